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
    /// Some 30 system calls and a pass over the generations, however many values there are; where there are too many rules
    /// already, a sweep for what has expired before.
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
            if enactment == .full {
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
