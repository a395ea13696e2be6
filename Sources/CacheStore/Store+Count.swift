// SPDX-License-Identifier: Apache-2.0

import Platform

extension Store {
    /// Has a directory counted whose control file was made anew, before more is stored in it: nobody knows what is
    /// there.
    ///
    /// Where somebody else does, it waits for that, as long as for room. Where it can't be counted, as not all of it can
    /// be read, it looks again after ten times as long, and meanwhile values are stored without a limit.
    func countIfUnknown(now: Timestamp, _ wait: inout RoomWait) throws(StoreError) {
        while let usage, !usage.isCounted, !wait.isOver {
            if let end = uncountableUntil.withLock({ $0 }), ContinuousClock.now < end { return }
            let nothing = LimitExcess(bytes: 0, entries: 0, reason: .size)
            wait.begin()
            let start = ContinuousClock.now
            let relief = try sweepForRoom(nothing, now: now, pace: wait.pace)
            if relief == .busy {
                if try !wait.pause() { return }
            } else if let usage = self.usage, !usage.isCounted {
                let pause = max(.seconds(1), (ContinuousClock.now - start) * Self.futileRest)
                uncountableUntil.withLock { $0 = .now + pause }
            }
        }
    }
}
