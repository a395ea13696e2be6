// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Platform

/// When a value expires.
///
/// This is an upper bound: a value may be evicted earlier, but after it has expired only readers that accept stale values
/// get it. On disk the time is stored to the millisecond, rounded down.
public enum Expiration: Sendable, Equatable {
    /// The value never expires.
    case never
    /// This many seconds from now; 0 expires at once, `.infinity` never.
    case seconds(Double)
    /// This many days of 86,400 seconds from now.
    case days(Int)
    /// This long from now.
    case after(Duration)
    /// At this time; if it is past, the value expires at once.
    case at(Date)
    /// At once.
    case expired

    /// Returns the time of expiration; nil for never.
    ///
    /// Times after the year 2262 mean never.
    func moment(from now: Timestamp) throws(CacheError) -> Timestamp? {
        let moment = try boundedMoment(from: now)
        return moment == .distantFuture ? nil : moment
    }

    /// Returns the time of expiration, at most `Timestamp.distantFuture`.
    private func boundedMoment(from now: Timestamp) throws(CacheError) -> Timestamp? {
        switch self {
        case .never: return nil
        case .expired: return now
        case .at(let date): return Timestamp(date)
        case .after(let duration):
            guard duration >= .zero else { throw Self.negative("\(duration)") }
            return now + duration
        case .days(let days):
            guard days >= 0 else { throw Self.negative("\(days) days") }
            return days < Int(Self.longest / 86_400) ? now + .seconds(86_400 * days) : .distantFuture
        case .seconds(let seconds):
            guard seconds >= 0 else { throw Self.negative("\(seconds) seconds") }
            return seconds < Self.longest ? now + .seconds(seconds) : .distantFuture
        }
    }

    /// More seconds from now than a `Timestamp` can represent.
    private static let longest = 1e10

    private static func negative(_ span: String) -> CacheError {
        CacheError(.invalidArgument, "expire after \(span): a lifetime can't be negative: use 0 or more")
    }
}

extension Expiration {
    /// The effect of an access on the expiration of a value.
    public enum OnAccess: Sendable, Equatable {
        /// No effect.
        case keep
        /// The access restarts the lifetime that the value was stored with.
        case renew
        /// The value lives at least this long after the access.
        case set(Duration)

        /// Returns the sliding lifetime of a record with this expiration; nil if the expiration is not sliding.
        func idleLifetime(expires: Timestamp?, from now: Timestamp) throws(CacheError) -> Duration? {
            guard let expires else { return nil }
            switch self {
            case .keep: return nil
            case .renew: return max(.zero, expires - now)
            case .set(let duration):
                guard duration > .zero else {
                    throw CacheError(
                        .invalidArgument,
                        "extend by \(duration): an extension must be positive: use more than 0"
                    )
                }
                return duration
            }
        }
    }
}

extension Timestamp {
    init(_ date: Date) {
        let seconds = date.timeIntervalSince1970
        // A `Date` is a `Double`; values beyond the range of nanoseconds in 64 bits are clamped.
        if seconds >= 9.2e9 {
            self = .distantFuture
        } else if seconds <= -9.2e9 || seconds.isNaN {
            self = .distantPast
        } else {
            let whole = seconds.rounded(.down)
            // Rounded to the microsecond: a `Date` has no finer resolution in these years, and truncating its rounding
            // error would turn a whole millisecond into the previous one.
            let microseconds = Int64(((seconds - whole) * 1e6).rounded())
            self.init(nanoseconds: Int64(whole) * 1_000_000_000 + microseconds * 1000)
        }
    }

    var date: Date {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Date(timeIntervalSince1970: Double(seconds) + Double(rest) / 1e9)
    }
}
