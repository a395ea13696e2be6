// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// A wall-clock time that several processes can compare: nanoseconds since 1970-01-01 UTC.
///
/// A timestamp covers the years 1678 to 2262; arithmetic saturates at the ends instead of trapping.
@usableFromInline
package struct Timestamp: Sendable, Hashable, Comparable {
    @usableFromInline package var nanoseconds: Int64

    @inlinable
    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    @inlinable package static var distantPast: Timestamp { Timestamp(nanoseconds: .min) }
    @inlinable package static var distantFuture: Timestamp { Timestamp(nanoseconds: .max) }

    /// The current time of CLOCK_REALTIME, clock_gettime(2), which the vDSO provides without a system call.
    package static var now: Timestamp {
        Timestamp(of: CLOCK_REALTIME)
    }

    /// The current time, late by up to a tick of the kernel (1 to 10 ms), for a quarter of the cost.
    ///
    /// C: `clock_gettime(CLOCK_REALTIME_COARSE)`.
    package static var coarseNow: Timestamp { Timestamp(of: CLOCK_REALTIME_COARSE) }

    /// Milliseconds of CLOCK_MONOTONIC, which all processes of the machine share and no process can set.
    package static var monotonicMilliseconds: UInt64 {
        UInt64(max(0, Timestamp(of: CLOCK_MONOTONIC).nanoseconds / 1_000_000))
    }

    /// Creates a timestamp from a clock's current time, in nanoseconds since the clock's origin.
    @inline(never)
    init(of clock: clockid_t) {
        var time = Glibc.timespec()
        let result = unsafe clock_gettime(clock, &time)
        precondition(result == 0, "every Linux has this clock")
        // No overflow: no clock has run for 292 years.
        self.init(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
    }

    /// This time, rounded down to a millisecond.
    package var wholeMilliseconds: Timestamp {
        let rest = nanoseconds % 1_000_000
        return Timestamp(nanoseconds: nanoseconds.subtractingSaturating(rest < 0 ? rest + 1_000_000 : rest))
    }

    init(_ time: Glibc.timespec) {
        let (scaled, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        let limit: Int64 = time.tv_sec < 0 ? .min : .max
        nanoseconds = overflow ? limit : scaled.addingSaturating(Int64(time.tv_nsec))
    }

    var fileTime: Glibc.timespec {
        // Rounded down, so that the nanoseconds are never negative, as utimensat(2) requires.
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest < 0
            ? Glibc.timespec(tv_sec: Int(seconds) - 1, tv_nsec: Int(rest) + 1_000_000_000)
            : Glibc.timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
    }

    @inlinable
    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Returns the time `duration` later, with saturation.
    package static func + (time: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(nanoseconds: time.nanoseconds.addingSaturating(duration.saturatingNanoseconds))
    }

    /// Returns the time `distance` nanoseconds later, with saturation.
    ///
    /// This costs a tenth of the time of adding a `Duration`.
    package func advanced(byNanoseconds distance: Int64) -> Timestamp {
        Timestamp(nanoseconds: nanoseconds.addingSaturating(distance))
    }

    /// Returns the time `duration` earlier, with saturation.
    package static func - (time: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(nanoseconds: time.nanoseconds.subtractingSaturating(duration.saturatingNanoseconds))
    }

    /// Returns the duration from `earlier` to `time`, negative if `earlier` is the later one, with saturation.
    package static func - (time: Timestamp, earlier: Timestamp) -> Duration {
        .nanoseconds(time.nanoseconds.subtractingSaturating(earlier.nanoseconds))
    }
}

extension Duration {
    /// The length in nanoseconds, at most about 292 years in either direction.
    package var saturatingNanoseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000)
    }
}

extension Int64 {
    fileprivate func addingSaturating(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    fileprivate func subtractingSaturating(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }
}

extension Timestamp {
    /// Passes to `body` the pair of times, for futimens(3) or utimensat(2), that sets the access time and leaves the
    /// modification time unchanged.
    @unsafe
    func withAccessTimes(_ body: (UnsafePointer<timespec>?) throws(Errno) -> Void) throws(Errno) {
        try unsafe Self.withTimes([fileTime, Self.unchanged], body)
    }

    /// Passes to `body` the pair of times that sets the modification time and leaves the access time unchanged.
    @unsafe
    func withModificationTimes(_ body: (UnsafePointer<timespec>?) throws(Errno) -> Void) throws(Errno) {
        try unsafe Self.withTimes([Self.unchanged, fileTime], body)
    }

    private static var unchanged: timespec { timespec(tv_sec: 0, tv_nsec: cplatform_UTIME_OMIT) }

    @unsafe
    private static func withTimes(
        _ times: InlineArray<2, timespec>,
        _ body: (UnsafePointer<timespec>?) throws(Errno) -> Void
    ) throws(Errno) {
        try unsafe times.span.withUnsafeBufferPointer { (buffer) throws(Errno) in
            try unsafe body(buffer.baseAddress)
        }
    }
}
