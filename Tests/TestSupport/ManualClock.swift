// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform

/// A clock that stands still until a test moves it.
public final class ManualClock: Sendable {
    private let seconds = Locked<Double>(1_700_000_000)

    /// Starts on 2023-11-14.
    public init() {}

    /// The clock's time.
    public var now: Date {
        Date(timeIntervalSince1970: seconds.withLock { $0 })
    }

    /// Advances the clock by a number of seconds, or sets it back if the number is negative.
    public func advance(by span: Double) {
        seconds.withLock { $0 += span }
    }
}
