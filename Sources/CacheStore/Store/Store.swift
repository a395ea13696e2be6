// SPDX-License-Identifier: Apache-2.0

package import Platform
import Synchronization

/// How a store is opened.
package struct StoreOptions: Sendable {
    package var recordForm: RecordForm = .attribute
    /// Whether a put reaches the medium before it returns.
    ///
    /// Without it a power cut may lose or damage values, which reading then finds out and treats as misses.
    package var isDurable = false
    /// How old an access time on disk may be before a hit renews it.
    package var accessGranularity: Duration = Store.defaultAccessGranularity

    /// Whether a get compares a value's bytes with their checksum, and not their length alone.
    package var checksContent = true

    /// How long a put waits for room where the directory is at one of its limits, or the disk is full, while somebody
    /// makes some.
    package var roomPatience: Duration = .seconds(60)

    /// Called at each step of a put: for tests of one that is stopped there.
    package var atStep: (@Sendable (PutStep) -> Void)?

    /// What to take for what the file system can do, instead of finding out: for tests of what falls back.
    package var assumedCapabilities: Capabilities?

    package init() {}
}

/// How far a put is.
package enum PutStep: String, Sendable, CaseIterable {
    /// It has claimed its room, if any had to be.
    case claimed
    /// The object is written and has no name yet.
    case written
    /// It holds the object's stripe, shared.
    case objectLocked
    /// It holds the entry's stripe too.
    case entryLocked
}

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
    /// 1/16 of an hour: the error of the eviction order is at most that, far below the hours and days after
    /// which anything is trimmed, and a hot key costs one extra call every four minutes.
    ///
    /// In simulation refreshing only what is older than half the cache's turnover loses 0.1 points of hit
    /// ratio. A sliding expiration narrows it to 1/16 of its lifetime.
    package static let defaultAccessGranularity: Duration = .seconds(3600) / 16

    package let directory: StoreDirectory
    package let objects: ObjectStore
    package let entries: EntryStore
    package let counters: StoreCounters
    let control: Control
    let objectStripes: Stripes
    let entryStripes: Stripes
    let checksContent: Bool
    let followed: FollowedConfiguration
    /// The same collaborators, for what works on all of them.
    package let parts: StoreParts
    package let room: Room
    let atStep: (@Sendable (PutStep) -> Void)?
    /// As the process wants it, and as the directory's turnover asks for it now.
    private let longestGranularity: Int64
    private let granularity: Atomic<Int64>
    private let accessNotes = Locked(AccessNotes())
    let records = RecordTable()

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
    ) throws(StoreError) {
        directory = try StoreDirectory(opening: path, assuming: options.assumedCapabilities)
        objects = ObjectStore(in: directory, isDurable: options.isDurable)
        entries = EntryStore(in: directory, form: options.recordForm, isDurable: options.isDurable)
        control = Control(of: directory)
        counters = StoreCounters(in: control, continuing: previous?.counters)
        objectStripes = Stripes(.object, in: control)
        entryStripes = Stripes(.entry, in: control)
        checksContent = options.checksContent
        followed = FollowedConfiguration(of: directory)
        parts = StoreParts(
            directory: directory,
            configuration: followed,
            control: control,
            counters: counters,
            objects: objects,
            entries: entries,
            objectStripes: objectStripes,
            entryStripes: entryStripes,
            janitor: JanitorLock(in: control)
        )
        room = Room(of: parts, patience: options.roomPatience)
        atStep = options.atStep
        longestGranularity = options.accessGranularity.saturatingNanoseconds
        granularity = Atomic(options.accessGranularity.saturatingNanoseconds)
        renewControl()
        followConfiguration()
    }

    // MARK: Accesses

    /// How old an access time on disk may be before a hit renews it, ns.
    package var accessGranularity: Int64 { granularity.load(ordering: .relaxed) }

    /// Adjusts the granularity to how long entries stay unused before they are evicted: at most a sixteenth of
    /// that, or entries in use would look as old as those that are not.
    ///
    /// Where nothing has been evicted yet, that is at most as long as the directory is in use.
    func renewGranularity() {
        guard configuration.limits.areBounding, let horizon = control.expectedHorizon else {
            return granularity.store(longestGranularity, ordering: .relaxed)
        }
        let wanted = max(Self.finestGranularity, horizon.saturatingNanoseconds / 16)
        granularity.store(min(longestGranularity, wanted), ordering: .relaxed)
    }

    /// ns: a tick of the coarse clock; finer is not told apart.
    private static let finestGranularity: Int64 = 10_000_000

    /// Whether an access time is recent enough for a value that accesses do not prolong.
    func isRecent(_ accessed: Timestamp, now: Timestamp) -> Bool {
        AccessNotes.isRecent(accessed, now: now, nanoseconds: accessGranularity)
    }

    /// Sees to the access time of an entry that was just hit.
    ///
    /// No call while the time seen last is recent enough, nor where the record is: the later of its creation and
    /// the access time tells how lately an entry was used (``Record/lastUse(accessed:now:)``). Else one to look at
    /// the time, and one to set it. A failure costs a place in the eviction order and nothing else, so it is
    /// counted, not thrown.
    ///
    /// The last use that is known of the entry from the disk, if it is recent enough now; nil where the access
    /// could not be noted.
    @discardableResult
    package func noteAccess(_ key: Digest, of record: Record, now: Timestamp) -> Timestamp? {
        guard let idleLifetime = record.idleLifetime else {
            if isRecent(record.created, now: now) { return record.created }
            return noteAccess(key, after: .distantPast, now, nanoseconds: accessGranularity)
        }
        let granularity = min(accessGranularity, (idleLifetime / 16).saturatingNanoseconds)
        // Only what lies after the writing prolongs a sliding expiration; an older access does not make
        // this one superfluous, however recent it is.
        return noteAccess(key, after: record.latestUncountedAccess, now, nanoseconds: granularity)
    }

    private func noteAccess(
        _ key: Digest,
        after start: Timestamp,
        _ now: Timestamp,
        nanoseconds: Int64
    ) -> Timestamp? {
        let recent = accessNotes.withLock {
            $0.recent(key, now: now, nanoseconds: nanoseconds, after: start)
        }
        if let recent { return recent }
        if !directory.isWritable { return nil }
        do throws(StoreError) {
            guard let status = try entries.status(of: key) else { return nil }
            var accessed = status.accessed
            if accessed <= start || !AccessNotes.isRecent(accessed, now: now, nanoseconds: nanoseconds) {
                guard try entries.setAccessTime(of: key, to: now) else { return nil }
                accessed = now
            }
            accessNotes.withLock { $0.note(key, accessed: accessed) }
            return accessed
        } catch {
            counters.add(.accessFailure)
            return nil
        }
    }

    /// Notes an access that was a hit in memory some time ago; the entry may be gone by now.
    ///
    /// Two system calls, one where another process has noted a later access.
    package func noteAccess(_ key: Digest, at time: Timestamp, now: Timestamp) {
        guard directory.isWritable else { return }
        do throws(StoreError) {
            guard let status = try entries.status(of: key) else { return }
            var accessed = status.accessed
            // One in the future is none: a clock was put back.
            if accessed < time || accessed > now {
                guard try entries.setAccessTime(of: key, to: time) else { return }
                accessed = time
            }
            let noted = accessed
            accessNotes.withLock { $0.note(key, accessed: noted) }
        } catch {
            counters.add(.accessFailure)
        }
    }
}
