// SPDX-License-Identifier: Apache-2.0

package import Platform
import Synchronization

/// Records on disk when entries were used, for the order of eviction and for sliding expirations.
///
/// The access time of an entry's file is the time of the entry's last access. It need not be exact: a hit renews it only if
/// it is older than the granularity, so that a hot key costs a few extra system calls once in a while.
package final class Accesses: Sendable {
    /// 1/16 of an hour, which is the maximum error of the eviction order.
    ///
    /// That is far below the hours and days after which entries are trimmed, and a hot key costs four extra system
    /// calls every four minutes. In a simulation, refreshing only access times that were older than half the cache's turnover
    /// lost 0.1 points of hit ratio. A sliding expiration narrows the granularity to 1/16 of its lifetime.
    package static let defaultGranularity: Duration = .seconds(3600) / 16

    /// The smallest granularity, in ns: a tick of the coarse clock, which does not distinguish shorter times.
    private static let finestGranularity: Int64 = 10_000_000

    private let entries: Entries
    private let counters: StoreCounters
    /// In ns: the granularity that the process wants, and the one that the directory's turnover requires now.
    private let longestGranularity: Int64
    private let presentGranularity: Atomic<Int64>
    private let notes = Locked(AccessNotes())

    init(of entries: Entries, granularity: Duration, counters: StoreCounters) {
        self.entries = entries
        self.counters = counters
        longestGranularity = granularity.saturatingNanoseconds
        presentGranularity = Atomic(granularity.saturatingNanoseconds)
    }

    /// How old an access time on disk may be before a hit renews it, in ns.
    package var granularity: Int64 { presentGranularity.load(ordering: .relaxed) }

    /// Adjusts the granularity to how long entries stay unused before they are evicted or removed as idle.
    ///
    /// The granularity is at most a sixteenth of that time: otherwise entries in use would look as old as unused ones. If
    /// nothing has been evicted yet, the horizon is at most the time for which the directory has been in use.
    ///
    /// - Parameter horizon: How long entries stay unused; nil if nothing is evicted or removed as idle, or it is unknown.
    func adjust(to horizon: Duration?) {
        let wanted = horizon.map { max(Self.finestGranularity, $0.saturatingNanoseconds / 16) }
        presentGranularity.store(min(longestGranularity, wanted ?? .max), ordering: .relaxed)
    }

    /// Returns whether an access time is recent enough for a value that accesses do not prolong.
    func isRecent(_ accessed: Timestamp, now: Timestamp) -> Bool {
        AccessNotes.isRecent(accessed, now: now, granularity: granularity)
    }

    /// Renews the access time of an entry that was just hit, if it is due.
    ///
    /// No system call if the access time seen last, or the record, is recent enough: the last use of an entry is the later
    /// of its creation and the access time (``Record/lastUse(accessed:now:)``). Otherwise one to check the access time, and
    /// three to set it. A failure only affects the place in the eviction order, so it is counted, not thrown.
    ///
    /// - Returns: The entry's last use as known from the disk, if it is recent enough now; nil if the access could not be
    ///   recorded.
    @discardableResult
    package func note(_ key: Digest, of record: Record, now: Timestamp) -> Timestamp? {
        var (granularity, start) = (granularity, Timestamp.distantPast)
        if let idleLifetime = record.idleLifetime {
            granularity = min(granularity, (idleLifetime / 16).saturatingNanoseconds)
            // Only an access after the write prolongs a sliding expiration; an older access does not make this one
            // superfluous, however recent it is.
            start = record.latestUncountedAccess
        } else if isRecent(record.created, now: now) {
            return record.created
        }
        let recent = notes.withLock {
            $0.recent(key, now: now, granularity: granularity, after: start)
        }
        return recent
            ?? set(key, to: now) {
                $0 <= start || !AccessNotes.isRecent($0, now: now, granularity: granularity)
            }
    }

    /// Records an access that was a hit in memory some time ago; the entry may have been deleted since then.
    ///
    /// Four system calls; one if another process has recorded a later access.
    package func note(_ key: Digest, at time: Timestamp, now: Timestamp) {
        // A time in the future does not count: a clock was set back.
        _ = set(key, to: time) { $0 < time || $0 > now }
    }

    /// Sets the access time of an entry if `isDue` returns true for the present one.
    ///
    /// - Returns: The access time afterwards; nil if the entry is missing or the time can't be set.
    private func set(_ key: Digest, to time: Timestamp, ifPresent isDue: (Timestamp) -> Bool) -> Timestamp? {
        if !entries.directory.isWritable { return nil }
        do throws(CacheError) {
            guard let status = try entries.directory.status(of: key, .entries) else { return nil }
            var accessed = status.accessed
            if isDue(accessed) {
                guard try entries.setAccessTime(of: key, to: time) else { return nil }
                accessed = time
            }
            notes.withLock { [accessed] in $0.note(key, accessed: accessed) }
            return accessed
        } catch {
            counters.add(.accessFailure)
            return nil
        }
    }
}
