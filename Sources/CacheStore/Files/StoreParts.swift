// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a store consists of, for what works on all of it: the room for puts, sweeps, verifications.
package struct StoreParts: Sendable {
    let configuration: FollowedConfiguration
    package let control: Control
    package let counters: StoreCounters
    package let objects: Objects
    package let entries: Entries
    let janitor: JanitorLock

    package var directory: StoreDirectory { control.directory }

    /// Where removals are logged; nil: nowhere.
    package var log: EventLog? {
        configuration.present.limits.eventLogSize.map { EventLog(in: directory, limit: $0.bytes) }
    }

    /// Bytes on disk that are to be reckoned with beside entries and objects: what the last sweep found, and at least
    /// what there will be once every shard is made.
    package var overhead: Int64 { max(control.overhead ?? 0, directory.usualOverhead) }

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
    ) throws(CacheError) -> Bool {
        let isDeleted = try entries.stripes.withLock(.exclusive, stripe: key.stripe, patience: patience) {
            () throws(CacheError) in
            guard try entries.recordBytes(key) == bytes else { return false }
            if let content, try objects.isPresent(content) { return false }
            return try entries.delete(key)
        }
        if isDeleted, let log {
            let name = RecordCodec.decode(bytes, for: key)?.key
            log.append([LoggedKey(digest: key, name: name)], cause: .repaired)
        }
        return isDeleted
    }
}

extension StoreDirectory {
    /// What the file system has; one system call.
    func space() throws(CacheError) -> FileSystemSpace {
        try describing("look at the file system of", path) { () throws(Errno) in
            try root.descriptor.fileSystemSpace()
        }
    }
}
