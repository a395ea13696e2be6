// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Growing, jittered pauses between attempts to acquire a resource that does not signal its release.
package struct Backoff: Sendable {
    /// The first pause: about as long as a put holds a stripe.
    package static let shortest: Duration = .microseconds(50)
    /// The longest pause.
    ///
    /// LLVM's lock files once slept in lockstep for seconds; capping the pause and adding jitter made builds
    /// 1.8 times faster (swiftlang/llvm-project#1129).
    package static let longest: Duration = .milliseconds(10)

    private var pause = Backoff.shortest
    private let cap: Duration

    /// Creates pauses that never exceed `cap`.
    package init(upTo cap: Duration = Backoff.longest) {
        self.cap = cap
    }

    /// Returns the next pause: a random part, at least half, of a span that doubles up to the cap.
    package mutating func next() -> Duration {
        let span = pause.saturatingNanoseconds
        pause = min(pause * 2, cap)
        return .nanoseconds(Int64.random(in: span / 2...span))
    }
}

/// Sleeps on the calling thread.
///
/// C: `nanosleep`.
package func sleepThread(for duration: Duration) {
    let nanoseconds = max(0, duration.saturatingNanoseconds)
    var pause = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    var rest = timespec()
    while unsafe nanosleep(&pause, &rest) == -1, Errno.current == .interrupted {
        pause = rest
    }
}
