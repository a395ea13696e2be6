// SPDX-License-Identifier: Apache-2.0

import Platform

extension Store {
    /// Has a directory counted whose control file was made anew, before more is stored in it: nobody knows what is
    /// there.
    ///
    /// Where somebody else does, it waits for that, as long as for room. Where it can't be counted, as not all of it can
    /// be read, it looks again after ten times as long, and meanwhile values are stored without a limit.
    func countIfUnknown(now: Timestamp) throws(StoreError) {
        let begin = ContinuousClock.now
        var backoff = Backoff()
        var generator = SystemRandomNumberGenerator()
        while let usage, !usage.isCounted, ContinuousClock.now - begin < roomPatience {
            if let end = uncountableUntil.withLock({ $0 }), ContinuousClock.now < end { return }
            let nothing = LimitExcess(bytes: 0, entries: 0, reason: .size)
            let start = ContinuousClock.now
            let relief = try sweepForRoom(nothing, now: now, pace: SweepPace())
            if relief == .busy {
                sleepThread(for: backoff.next(using: &generator))
            } else if let usage = self.usage, !usage.isCounted {
                let pause = max(.seconds(1), (ContinuousClock.now - start) * Self.futileRest)
                uncountableUntil.withLock { $0 = .now + pause }
            }
        }
    }
}
