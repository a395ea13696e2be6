// SPDX-License-Identifier: Apache-2.0

import Platform

/// A cache directory shared by processes: objects, entries, and the protocol that keeps them consistent.
///
/// Synchronous, and safe to use from any number of threads and processes, each of which may be killed at
/// any instruction. Time is told by the caller.
///
/// The protocol in three sentences. A put makes its object exist, or raises the change time of the one
/// that does, and then publishes the entry, all under the object's stripe held shared. A sweep takes a
/// time stamp, then each object stripe exclusively once, then reads all entries; it deletes an object
/// that no entry named if, looked at again under its stripe held exclusively, it has not changed since
/// the stamp. Readers take no lock: they read the record, then the object, and where that is gone the
/// record once more.
package final class Store: Sendable {
    /// What it puts together.
    package let parts: StoreParts
    package let room: Room
    package let accesses: Accesses
    /// What this process knows of entries that it has read.
    ///
    /// Not in ``Entries``: a get would count one reference more.
    let records = RecordTable()
    let atStep: (@Sendable (PutStep) -> Void)?
    /// What writers note for stores on other machines, if there are any.
    package let outbox: OutboxFile
    package let requestLocks: RequestLocks

    /// Opens the cache at `path`, creating it where there is nothing.
    ///
    /// - Parameters:
    ///   - path: the directory.
    ///   - options: how to use it.
    ///   - previous: the store that this one takes the place of, whose counts go on.
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
        let control = Control(of: directory)
        let entries = Entries(in: control, form: options.recordForm, isDurable: options.isDurable)
        let counters = StoreCounters(in: control, continuing: previous?.counters)
        parts = StoreParts(
            configuration: FollowedConfiguration(of: directory),
            control: control,
            counters: counters,
            objects: Objects(in: control, isDurable: options.isDurable, checksContent: options.checksContent),
            entries: entries,
            janitor: JanitorLock(in: control)
        )
        room = Room(of: parts, patience: options.roomPatience)
        accesses = Accesses(of: entries, granularity: options.accessGranularity, counters: counters)
        atStep = options.atStep
        outbox = OutboxFile(in: directory)
        requestLocks = RequestLocks(in: directory)
        renewControl()
        followConfiguration()
    }

    package var directory: StoreDirectory { parts.directory }
    package var control: Control { parts.control }
    package var counters: StoreCounters { parts.counters }
    package var objects: Objects { parts.objects }
    package var entries: Entries { parts.entries }
}
