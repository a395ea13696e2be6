// SPDX-License-Identifier: Apache-2.0

import Platform

/// The components of a store, for operations on all of it: the room for puts, sweeps, verifications.
package struct StoreParts: Sendable {
    let configuration: FollowedConfiguration
    package let control: Control
    package let counters: StoreCounters
    package let objects: Objects
    package let entries: Entries
    let janitor: JanitorLock

    package var directory: StoreDirectory { control.directory }

    /// The log of removals; nil if there is none.
    package var log: EventLog? {
        configuration.present.limits.eventLogSize.map { EventLog(in: directory, limit: $0.bytes) }
    }

    /// Bytes on disk to expect besides entries and objects.
    ///
    /// This is the result of the last sweep, and at least the overhead once every shard exists.
    package var overhead: Int64 { max(control.overhead ?? 0, directory.usualOverhead) }

    /// Deletes an entry whose record still has these bytes; returns whether it was deleted.
    ///
    /// - Parameter content: the content that the record names, if its object was found missing. The entry stays if the
    ///   object exists now: another put of the same bytes in the same millisecond makes the same record, after an object.
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
    /// Returns the space of the file system; one system call.
    func space() throws(CacheError) -> FileSystemSpace {
        try describing("look at the file system of", path) { () throws(Errno) in
            try root.descriptor.fileSystemSpace()
        }
    }
}
