// SPDX-License-Identifier: Apache-2.0

package import Platform
import Synchronization

/// Noting on disk when entries were used, which the order of eviction and sliding expirations go by.
///
/// An entry's file has the time of its last access. It need not be exact: a hit renews it only where it is older than
/// the granularity, so that a hot key costs one extra call in a while.
package final class Accesses: Sendable {
    /// 1/16 of an hour: the error of the eviction order is at most that, far below the hours and days after
    /// which anything is trimmed, and a hot key costs one extra call every four minutes.
    ///
    /// In simulation refreshing only what is older than half the cache's turnover loses 0.1 points of hit
    /// ratio. A sliding expiration narrows it to 1/16 of its lifetime.
    package static let defaultGranularity: Duration = .seconds(3600) / 16

    /// ns: a tick of the coarse clock; finer is not told apart.
    private static let finestGranularity: Int64 = 10_000_000

    private let entries: Entries
    private let counters: StoreCounters
    /// As the process wants it, and as the directory's turnover asks for it now.
    private let longestGranularity: Int64
    private let presentGranularity: Atomic<Int64>
    private let notes = Locked(AccessNotes())

    init(of entries: Entries, granularity: Duration, counters: StoreCounters) {
        self.entries = entries
        self.counters = counters
        longestGranularity = granularity.saturatingNanoseconds
        presentGranularity = Atomic(granularity.saturatingNanoseconds)
    }

    /// How old an access time on disk may be before a hit renews it, ns.
    package var granularity: Int64 { presentGranularity.load(ordering: .relaxed) }

    /// Adjusts the granularity to how long entries stay unused before they are evicted or removed as idle: at most a
    /// sixteenth of that, or entries in use would look as old as those that are not.
    ///
    /// Where nothing has been evicted yet, that is at most as long as the directory is in use.
    ///
    /// - Parameter horizon: nil if nothing is evicted or removed as idle, or that can't be told.
    func adjust(to horizon: Duration?) {
        let wanted = horizon.map { max(Self.finestGranularity, $0.saturatingNanoseconds / 16) }
        presentGranularity.store(min(longestGranularity, wanted ?? .max), ordering: .relaxed)
    }

    /// Whether an access time is recent enough for a value that accesses do not prolong.
    func isRecent(_ accessed: Timestamp, now: Timestamp) -> Bool {
        AccessNotes.isRecent(accessed, now: now, granularity: granularity)
    }

    /// Sees to the access time of an entry that was just hit.
    ///
    /// No call while the time seen last is recent enough, nor where the record is: the later of its creation and
    /// the access time tells how lately an entry was used (``Record/lastUse(accessed:now:)``). Else one to look at
    /// the time, and one to set it. A failure costs a place in the eviction order and nothing else, so it is
    /// counted, not thrown.
    ///
    /// - Returns: the last use that is known of the entry from the disk, if it is recent enough now; nil where the
    ///   access could not be noted.
    @discardableResult
    package func note(_ key: Digest, of record: Record, now: Timestamp) -> Timestamp? {
        var (granularity, start) = (granularity, Timestamp.distantPast)
        if let idleLifetime = record.idleLifetime {
            granularity = min(granularity, (idleLifetime / 16).saturatingNanoseconds)
            // Only what lies after the writing prolongs a sliding expiration; an older access does not make
            // this one superfluous, however recent it is.
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

    /// Notes an access that was a hit in memory some time ago; the entry may be gone by now.
    ///
    /// Two system calls, one where another process has noted a later access.
    package func note(_ key: Digest, at time: Timestamp, now: Timestamp) {
        // One in the future is none: a clock was put back.
        _ = set(key, to: time) { $0 < time || $0 > now }
    }

    /// Sets the access time of an entry if the present one `isDue`; what it is then, nil where there is none or it
    /// can't be set.
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
