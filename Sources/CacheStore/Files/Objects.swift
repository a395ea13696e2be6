// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import Platform

/// How a look at an object that a record names ended.
package enum Lookup<Value: ~Copyable>: ~Copyable {
    case found(Value)
    /// There is none: it was swept since the record was read, or removed by hand.
    case missing
    /// There is one that can't be used: it is damaged, or another user's.
    case unusable
}

/// The objects: files named by the SHA-256 of their bytes, which never change once they have a name.
package final class Objects: Sendable {
    let directory: StoreDirectory
    let stripes: Stripes
    let isDurable: Bool
    let novelty = Novelty()
    let control: Control
    private let checksContent: Bool

    init(in control: Control, isDurable: Bool, checksContent: Bool) {
        self.control = control
        directory = control.directory
        stripes = Stripes(of: .objects, in: control)
        self.isDurable = isDurable
        self.checksContent = checksContent
    }

    // MARK: Reading

    /// Reads an object and checks its length, and its checksum too unless the store does without: `openat2`, `read`,
    /// `close`; one call where it is missing.
    func read(_ content: Content, alwaysChecked: Bool = false) throws(CacheError) -> Lookup<Data> {
        let isChecked = checksContent || alwaysChecked
        do throws(Errno) {
            let path = StoreLayout.path(of: content.digest)
            let data = try directory.objects.contents(of: path, count: content.length) { (bytes) in
                !isChecked || CRC32C.checksum(bytes) == content.checksum
            }
            return data.map { .found($0) } ?? .unusable
        } catch {
            if error.tellsOfNothing { return .missing }
            if error.tellsOfNoFile { return .unusable }
            let path = directory.path(of: content.digest, .objects)
            throw CacheError(errno: error, "read an object", path: path)
        }
    }

    /// Opens an object whose bytes have been checked like those that ``read(_:alwaysChecked:)`` gives, at its start.
    ///
    /// Memory: one chunk.
    func open(_ content: Content) throws(CacheError) -> Lookup<FileDescriptor> {
        guard let file = try open(content.digest) else { return .missing }
        let isWhole = try describing("read an object", directory.path(of: content.digest, .objects)) {
            () throws(Errno) in
            let status = try file.status()
            guard status.kind == .regular, status.size == Int64(content.length) else { return false }
            if !checksContent { return true }
            var checksum = CRC32C()
            try file.forEachChunk(orThrow: { $0 }) { (chunk) throws(Errno) in checksum.update(chunk) }
            try file.rewind()
            return checksum.value == content.checksum
        }
        return isWhole ? .found(file) : .unusable
    }

    /// Opens an object without checking it; nil where it is missing, or something other than a file has its
    /// name.
    package func open(_ digest: Digest) throws(CacheError) -> FileDescriptor? {
        do throws(Errno) {
            return try openFile(digest)
        } catch {
            if error.tellsOfNothing || error.tellsOfNoFile { return nil }
            throw CacheError(errno: error, "open an object", path: directory.path(of: digest, .objects))
        }
    }

    func openFile(_ digest: Digest) throws(Errno) -> FileDescriptor {
        try directory.objects.open(StoreLayout.path(of: digest), .readOnly)
    }

    /// Whether there is an object that can be whole; one of the wrong length can't.
    ///
    /// One call. Objects never change, so the caller needs no lock.
    func isPresent(_ content: Content) throws(CacheError) -> Bool {
        guard let status = try directory.status(of: content.digest, .objects) else { return false }
        return status.kind == .regular && status.size == Int64(content.length)
    }

    /// What an object's bytes really are, read and hashed anew, at most so many of them, and its state; nil where
    /// it is gone.
    ///
    /// Memory: one chunk.
    func content(
        ofObject digest: Digest,
        atMost length: Int? = nil
    ) throws(CacheError) -> (content: Content, status: FileStatus)? {
        guard let file = try open(digest) else { return nil }
        return try describing("read an object", directory.path(of: digest, .objects)) { () throws(Errno) in
            let status = try file.status()
            return (try file.describeContent(atMost: length ?? .max), status)
        }
    }

    // MARK: Deleting

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
    ) throws(CacheError) -> Verdict {
        guard let (content, status) = try content(ofObject: digest, atMost: length) else { return .undecided }
        let isLonger = status.size > Int64(content.length)
        if (content.digest == digest) != isLonger { return isLonger ? .undecided : .sound }
        let isDeleted = try stripes.withLock(.exclusive, stripe: digest.stripe, patience: patience) {
            () throws(CacheError) in
            // A put may have replaced it by a good one meanwhile.
            let present = try directory.status(of: digest, .objects)
            guard present?.identity == status.identity, try directory.delete(digest, .objects) else {
                return false
            }
            control.addUsage(bytes: -status.allocatedSize, entries: 0)
            return true
        }
        return isDeleted ? .deleted : .undecided
    }
}

extension FileStatus {
    /// Whether the file is much longer than what it takes on disk, as one is that was lengthened by a call
    /// (truncate(2)): how long it should be is asked before it is read.
    ///
    /// Values may be like that, too, where the file system compresses, or shares a file with holes.
    var hasLargeHoles: Bool { size - allocatedSize > 64 << 20 }
}

extension FileDescriptor {
    /// Digest, length and checksum of the bytes from here to the end, or of the first so many.
    ///
    /// Memory: one chunk.
    func describeContent(atMost most: Int = .max) throws(Errno) -> Content {
        var hash = SHA256()
        var checksum = CRC32C()
        var length = 0
        try forEachChunk(atMost: most, orThrow: { $0 }) { (chunk) throws(Errno) in
            hash.update(chunk)
            checksum.update(chunk)
            length += chunk.count
        }
        let digest = Digest(bytes: hash.finalize())
        return Content(digest: digest, length: length, checksum: checksum.value)
    }
}
