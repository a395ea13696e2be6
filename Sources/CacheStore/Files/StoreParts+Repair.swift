// SPDX-License-Identifier: Apache-2.0

import Platform

/// Deleting what is damaged, under its stripe.
extension StoreParts {
    /// What became of an object that did not agree with a record.
    enum Verdict {
        /// Its bytes are those of its name.
        case sound
        case deleted
        /// It is gone, or may be either.
        case undecided
    }

    /// Deletes an object whose bytes don't have the digest that is its name.
    ///
    /// - Parameter length: how many bytes a record promises: then no more are read. If those are the value, the
    ///   file was lengthened; if not, and there are more, it is not decided here whether record or object is wrong.
    func deleteIfCorrupt(
        _ digest: Digest,
        expecting length: Int? = nil,
        patience: Duration
    ) throws(StoreError) -> Verdict {
        guard let (content, status) = try content(ofObject: digest, atMost: length) else { return .undecided }
        let isLonger = status.size > Int64(content.length)
        if (content.digest == digest) != isLonger { return isLonger ? .undecided : .sound }
        let isDeleted = try objectStripes.withLock(.exclusive, of: digest, patience: patience) {
            () throws(StoreError) in
            // A put may have replaced it by a good one meanwhile.
            guard let present = try objects.status(of: digest), present.identity == status.identity,
                try objects.delete(digest)
            else { return false }
            control.addUsage(bytes: -status.allocatedSize, entries: 0)
            return true
        }
        return isDeleted ? .deleted : .undecided
    }

    /// Deletes an entry whose record still has these bytes.
    ///
    /// True: it was deleted.
    ///
    /// - Parameter content: what the record promises, where its object was found gone: it stays if that is there
    ///   now. Another put of the same bytes in the same millisecond makes the same record, and an object before it.
    package func deleteEntry(
        _ key: Digest,
        ifStill bytes: [UInt8],
        unlessPresent content: Content? = nil,
        patience: Duration = Stripes.writerPatience
    ) throws(StoreError) -> Bool {
        let isDeleted = try entryStripes.withLock(.exclusive, of: key, patience: patience) {
            () throws(StoreError) in
            guard try entries.read(key)?.bytes == bytes else { return false }
            if let content, try objects.isPresent(content) { return false }
            guard try entries.delete(key) else { return false }
            control.addUsage(bytes: -entries.usualAllocation, entries: -1)
            return true
        }
        if isDeleted, let log {
            let name = RecordCodec.decode(bytes, for: key)?.key
            log.append([LoggedKey(digest: key, name: name)], cause: .repaired)
        }
        return isDeleted
    }

    /// What an object's bytes really are, read and hashed anew, at most so many of them, and its state; nil where
    /// it is gone.
    ///
    /// Memory: one chunk.
    func content(
        ofObject digest: Digest,
        atMost length: Int? = nil
    ) throws(StoreError) -> (content: Content, status: FileStatus)? {
        guard let file = try objects.open(digest) else { return nil }
        return try describing("read an object", objects.path(of: digest)) { () throws(Errno) in
            let status = try file.status()
            return (try file.describeContent(atMost: length ?? .max), status)
        }
    }
}
