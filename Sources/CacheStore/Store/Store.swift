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
    /// The components that the store combines.
    package let parts: StoreParts
    package let room: Room
    package let accesses: Accesses
    /// The records that this process remembers of entries that it has read.
    ///
    /// Not in ``Entries``: a get would count one more reference.
    let records = RecordTable()
    let atStep: (@Sendable (PutStep) -> Void)?
    /// The changes that writers record for stores on other machines, if there are any.
    package let outbox: OutboxFile
    package let requestLocks: RequestLocks

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
