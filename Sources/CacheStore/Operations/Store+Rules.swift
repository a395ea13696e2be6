// SPDX-License-Identifier: Apache-2.0

package import Platform

/// Operations on many values at once, without reading any of them.
extension Store {
    /// When the rules in force last changed; nil if there are none.
    ///
    /// No system calls.
    package var rulesMade: Timestamp? {
        let version = control.rulesVersion
        // Versions follow the clock, in milliseconds.
        return version == 0 ? nil : Timestamp(milliseconds: Int64(clamping: version))
    }

    /// Removes or expires all present values of a selection, for all processes, in one step.
    ///
    /// About 30 system calls and a pass over the generations, however many values there are. If there are too many rules
    /// already, all of them are carried out first: by a sweep of expired values, and if that is not enough, by new records
    /// for all stale values and another sweep. So one call in 64 takes long.
    ///
    /// - Returns: false if that is impossible, and the caller must handle each value individually.
    package func enact(
        _ effect: RemovalRule.Effect,
        _ selection: KeySelection,
        now: Timestamp,
        atStep: (RuleStep) -> Void = { _ in }
    ) -> Bool {
        if !hasGenerations { renewControl() }
        // The values of servers, too, whose keys this machine does not know.
        versions.refuseOlder()
        do throws(CacheError) {
            var enactment = try control.enact(effect, selection, now: now, atStep: atStep)
            for isLast in [false, true] where enactment == .full {
                if isLast { try writeOutRules(now: now) }
                var request = SweepRequest()
                request.expiredOnly = true
                _ = try Sweep.run(request, on: self, now: now)
                enactment = try control.enact(effect, selection, now: now, atStep: atStep)
            }
            guard enactment == .done else { return false }
            counters.add(.removalRule)
            return true
        } catch {
            // The disk is full, or another file is in the place of the rules file: the caller can still handle each value.
            return false
        }
    }

    /// Rewrites the record of each value that rules in force have changed, so that the next sweep can delete the rules.
    ///
    /// The new record is the one that results from the rules.
    private func writeOutRules(now: Timestamp) throws(CacheError) {
        for shard in 0..<StoreLayout.shardCount {
            for key in try digests(.entries, shard: shard).digests {
                var backoff = Backoff()
                while try !writeOutRules(for: key, now: now) { sleepThread(for: backoff.next()) }
            }
        }
    }

    /// Rewrites one entry; returns false if it has changed meanwhile.
    private func writeOutRules(for key: Digest, now: Timestamp) throws(CacheError) -> Bool {
        guard let (stored, status) = try entry(key), stored.isChangedByRules,
            let record = stored.record,
            stored.freshness(at: now, accessed: status.accessed) != .expired
        else { return true }
        return try rewrite(record, for: key, ifStill: stored, now: now, keeping: status.accessed) != .conflict
    }

    /// Expires one entry, also one that records an absence, at `now`, if it has not expired; returns false if the entry
    /// has changed meanwhile and the caller must try again.
    ///
    /// - Parameter isMeant: returns whether to expire the entry.
    package func expire(
        _ key: Digest,
        staleFor period: Duration?,
        now: Timestamp,
        where isMeant: (Record) -> Bool
    ) throws(CacheError) -> Bool {
        try unpack(key)
        guard let live = try present(key, now, false, nil), isMeant(live.record) else { return true }
        var record = live.record
        record.expire(at: now, staleFor: period)
        return try rewrite(record, for: key, ifStill: live.stored, now: now) != .conflict
    }
}
