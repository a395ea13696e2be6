// SPDX-License-Identifier: Apache-2.0

import Platform

/// A cache directory shared by processes: objects, entries, and the protocol that keeps them consistent.
///
/// Synchronous, and safe to use from any number of threads and processes, each of which may be killed at any instruction.
/// The caller provides the time.
///
/// The protocol in brief. A put creates its object, or raises the change time of the existing one, and then publishes the
/// entry, all under the object's stripe held shared. A sweep takes a time stamp, then each object stripe exclusively once,
/// then reads all entries. It deletes an object that no entry named if the object, checked again under its stripe held
/// exclusively, has not changed since the stamp. Readers take no lock: they read the record, then the object, and if the
/// object is missing the record once more.
package final class Store: Sendable {
    package let control: Control
    package let counters: StoreCounters
    package let objects: Objects
    package let entries: Entries
    package let accesses: Accesses
    /// The records that this process remembers of entries that it has read.
    ///
    /// Not in ``Entries``: a get would count one more reference.
    let records = RecordCache()
    /// The configuration of the directory, as it changes.
    let followed: FollowedConfiguration
    let janitor: JanitorLock
    let space: SpaceState
    /// The changes that writers record for stores on other machines, if there are any.
    package let outbox: OutboxFile
    package let requestLocks: RequestLocks
    let atStep: (@Sendable (PutStep) -> Void)?

    /// Opens the cache at `path`, creating it if it does not exist.
    ///
    /// - Parameters:
    ///   - path: the directory.
    ///   - options: how to use it.
    ///   - previous: the store that this one replaces and whose counts it continues.
    package init(
        at path: String,
        options: StoreOptions = StoreOptions(),
        replacing previous: Store? = nil
    ) throws(CacheError) {
        let directory = try StoreDirectory(
            opening: path,
            assuming: options.assumedCapabilities,
            form: options.recordForm
        )
        control = Control(of: directory)
        counters = StoreCounters(in: control, continuing: previous?.counters)
        objects = Objects(in: control, isDurable: options.isDurable, checksContent: options.checksContent)
        entries = Entries(in: control, form: options.recordForm, isDurable: options.isDurable)
        accesses = Accesses(of: entries, granularity: options.accessGranularity, counters: counters)
        followed = FollowedConfiguration(of: directory)
        janitor = JanitorLock(in: control)
        space = SpaceState(patience: options.roomPatience)
        outbox = OutboxFile(in: directory)
        requestLocks = RequestLocks(in: directory)
        atStep = options.atStep
        renewControl()
        followConfiguration()
    }

    package var directory: StoreDirectory { control.directory }

    /// Bytes on disk to expect besides entries and objects.
    ///
    /// This is the result of the last sweep, and at least the overhead once every shard exists.
    package var overhead: Int64 { max(control.overhead ?? 0, directory.usualOverhead) }

    // MARK: Log

    /// The log of removals; nil if there is none.
    package var eventLog: EventLog? {
        configuration.limits.eventLogSize.map { EventLog(in: directory, limit: $0.bytes) }
    }

    /// Logs that one key was removed, if there is a log.
    func log(_ cause: LoggedRemoval.Cause, of key: Digest, name: @autoclosure () -> String?) {
        eventLog?.append([LoggedKey(digest: key, name: name())], cause: cause)
    }

    // MARK: Repairs

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
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe, patience: patience)
        guard try entries.recordBytes(key) == bytes else { return false }
        if let content, try objects.isPresent(content) { return false }
        let isDeleted = try entries.delete(key, under: lock)
        lock.release()
        if isDeleted { log(.repaired, of: key, name: RecordCodec.decode(bytes, for: key)?.key) }
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
