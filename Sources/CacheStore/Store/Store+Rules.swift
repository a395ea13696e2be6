// SPDX-License-Identifier: Apache-2.0

package import Platform

/// Many values at once, without looking at any.
extension Store {
    /// When the rules in force were changed last; nil: there are none.
    ///
    /// No system call.
    package var rulesMade: Timestamp? {
        let version = control.rulesVersion
        // Versions go with the time.
        return version == 0 ? nil : Timestamp(milliseconds: Int64(clamping: version))
    }

    /// Has all values of a selection that are there now removed, or expire, for all processes, in one step.
    ///
    /// Some 30 system calls and a pass over the generations, however many values there are. If there are too many rules already,
    /// all of them are carried out first: by a sweep of expired values, and if that is not enough, by new records for all
    /// stale values and another sweep. So of 64 calls one is long.
    ///
    /// - Returns: false where that can't be, and each value has to be seen to by itself.
    package func enact(
        _ effect: RemovalRule.Effect,
        _ selection: KeySelection,
        now: Timestamp,
        atStep: (RuleStep) -> Void = { _ in }
    ) -> Bool {
        if !hasGenerations { renewControl() }
        // Whatever of it other machines have: which keys those are nobody knows here.
        raiseRemoteBarrier()
        do throws(CacheError) {
            var enactment = try control.enact(effect, selection, now: now, atStep: atStep)
            for isLast in [false, true] where enactment == .full {
                if isLast { try writeOutRules(now: now) }
                var request = SweepRequest()
                request.expiredOnly = true
                _ = try Sweep.run(request, on: parts, now: now)
                enactment = try control.enact(effect, selection, now: now, atStep: atStep)
            }
            guard enactment == .done else { return false }
            counters.add(.removalRule)
            return true
        } catch {
            // A full disk, or something in the place of the file: none of that keeps anybody from taking each value.
            return false
        }
    }

    /// Gives each value that rules in force have changed the record that they leave of it.
    ///
    /// Then the next sweep can take the rules off.
    private func writeOutRules(now: Timestamp) throws(CacheError) {
        for shard in 0..<StoreLayout.shardCount {
            for key in try parts.digests(.entries, shard: shard).digests {
                var backoff = Backoff()
                while try !writeOutRules(for: key, now: now) { sleepThread(for: backoff.next()) }
            }
        }
    }

    /// False if the entry has changed meanwhile.
    private func writeOutRules(for key: Digest, now: Timestamp) throws(CacheError) -> Bool {
        guard let (stored, status) = try parts.entry(key), stored.isChangedByRules,
            let record = stored.record,
            stored.freshness(at: now, accessed: status.accessed) != .expired
        else { return true }
        return try rewrite(record, for: key, ifStill: stored, now: now, keeping: status.accessed) != .conflict
    }

    /// Has one entry expire at `now`, if it has not; false where it has changed meanwhile, and is to be tried again.
    ///
    /// - Parameter isMeant: whether it is to.
    package func expire(
        _ key: Digest,
        staleFor period: Duration?,
        now: Timestamp,
        where isMeant: (Record) -> Bool
    ) throws(CacheError) -> Bool {
        guard let live = try liveEntry(key, now: now, allowingStale: false), isMeant(live.record) else {
            return true
        }
        var record = live.record
        record.expire(at: now, staleFor: period)
        return try rewrite(record, for: key, ifStill: live.stored, now: now) != .conflict
    }
}
