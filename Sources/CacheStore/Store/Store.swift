// SPDX-License-Identifier: Apache-2.0

import Platform

/// A cache directory that processes share: objects, entries, and the protocol that keeps them consistent.
///
/// A store is synchronous, and safe to use from any number of threads and processes, each of which may be killed at any
/// instruction. The caller provides the time.
///
/// The protocol in brief. A put holds the object's stripe shared while it creates the object, or raises the change time
/// of the existing one, and then publishes the entry. A sweep takes a time stamp, then acquires each object stripe
/// exclusively once, and then reads all entries. It then deletes each object that no entry names, if the object, checked
/// again while its stripe is held exclusively, has not changed since the stamp. Readers take no lock: they read the
/// record and then the object, and if the object is missing, they read the record once more.
package final class Store: Sendable {
    package let control: Control
    package let counters: StoreCounters
    package let objects: Objects
    package let entries: Entries
    package let accesses: Accesses
    /// The records of entries that this process has read.
    ///
    /// It is not in ``Entries``, because a get would then count one more reference.
    let records = RecordCache()
    /// The configuration of the directory, with changes that other processes make.
    let followed: FollowedConfiguration
    let janitor: JanitorLock
    /// The small values that are in packs; nil if all values are in files.
    let packs: Packs?
    let space: SpaceState
    /// The changes that writers record for stores on other machines, if there are such stores.
    package let outbox: OutboxFile
    /// The versions of the changes, if there are such stores.
    package let versions: Versions
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
        let directory = try Self.openDirectory(at: path, options)
        control = Control(of: directory)
        counters = StoreCounters(in: control, continuing: previous?.counters)
        objects = Objects(in: control, isDurable: options.isDurable, checksContent: options.checksContent)
        entries = Entries(in: control, form: options.recordForm, isDurable: options.isDurable)
        accesses = Accesses(of: entries, granularity: options.accessGranularity, counters: counters)
        followed = FollowedConfiguration(of: directory)
        janitor = JanitorLock(in: control)
        space = SpaceState(patience: options.roomPatience)
        outbox = OutboxFile(in: directory)
        versions = Versions(in: control, counters: counters, clock: options.clock)
        requestLocks = RequestLocks(in: directory)
        packs = options.packsSmallValues ? Self.openPacks(in: directory, entries, counters) : nil
        atStep = options.atStep
        renewControl()
        followConfiguration()
    }

    /// Opens the directory, and does so again if it was deleted meanwhile.
    private static func openDirectory(at path: String, _ options: StoreOptions) throws(CacheError)
        -> StoreDirectory
    {
        var attempts = 3
        while true {
            attempts -= 1
            do throws(CacheError) {
                return try StoreDirectory(
                    opening: path,
                    assuming: options.assumedCapabilities,
                    form: options.recordForm
                )
            } catch {
                guard error.cause == .noEntry, attempts > 0 else { throw error }
            }
        }
    }

    /// Returns the packs of the directory; nil if its file system can't have them, or if their index is damaged.
    private static func openPacks(
        in directory: StoreDirectory,
        _ entries: Entries,
        _ counters: StoreCounters
    ) -> Packs? {
        guard directory.isWritable, directory.capabilities.sharedMapping == .file else { return nil }
        do throws(CacheError) {
            return try Packs(in: directory, stripes: entries.stripes)
        } catch {
            if error.cause != .notSupported { counters.add(.controlFailure) }
            return nil
        }
    }

    package var directory: StoreDirectory { control.directory }

    /// The expected bytes on disk that are not part of entries or objects.
    ///
    /// This is the result of the last sweep, but at least the overhead of a directory in which every shard exists, and the
    /// event log.
    package var overhead: Int64 { max(control.overhead ?? 0, directory.usualOverhead) + eventLogSpace }

    /// The bytes on disk of the event log when it is full, because it grows between sweeps; 0 if there is none.
    package var eventLogSpace: Int64 { eventLogSpace(configuration.limits) }

    private func eventLogSpace(_ limits: CacheLimits) -> Int64 {
        eventLog(limits).map { directory.allocation(of: Int(clamping: $0.limit)) } ?? 0
    }

    /// The bytes by which the files of the event log exceed the space that counts for it with the given limits: the files
    /// stay if the log is turned off or gets a smaller limit.
    ///
    /// Two system calls. Files whose status can't be read are omitted.
    func eventLogExcess(_ limits: CacheLimits) -> Int64 {
        var bytes: Int64 = 0
        for name in StoreLayout.eventFiles {
            bestEffort { () throws(Errno) in
                bytes += try directory.root.presentStatus(of: name)?.allocatedSize ?? 0
            }
        }
        return max(0, bytes - eventLogSpace(limits))
    }

    // MARK: Log

    /// The log of removals; nil if there is none.
    package var eventLog: EventLog? { eventLog(configuration.limits) }

    private func eventLog(_ limits: CacheLimits) -> EventLog? {
        guard let size = limits.eventLogSize, size.bytes > 0 else { return nil }
        return EventLog(in: directory, limit: size.bytes)
    }

    /// Logs the removal of one key, if there is a log.
    func log(_ cause: LoggedRemoval.Cause, of key: Digest, name: @autoclosure () -> String?) {
        eventLog?.append([LoggedKey(digest: key, name: name())], cause: cause)
    }

    // MARK: Repairs

    /// Deletes an entry if its record still has the given bytes; returns whether it was deleted.
    ///
    /// - Parameter content: the content that the record names, if its object was found missing. The entry stays if the
    ///   object exists now: another put of the same bytes in the same millisecond creates the object and then an
    ///   identical record.
    package func deleteEntry(
        _ key: Digest,
        ifStill bytes: [UInt8],
        unlessPresent content: Content? = nil,
        patience: Duration = Stripes.writerPatience
    ) throws(CacheError) -> Bool {
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe, patience: patience)
        guard try entries.recordBytes(key) == bytes else { return false }
        if let content, try objects.isPresent(content) { return false }
        try rememberVersion(of: key, under: lock)
        let isDeleted = try entries.delete(key, under: lock)
        lock.release()
        if isDeleted { log(.repaired, of: key, name: Record(decoding: bytes, for: key)?.key) }
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
