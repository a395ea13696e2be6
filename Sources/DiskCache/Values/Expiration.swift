// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Platform

/// Until when a value is valid.
///
/// An upper bound: a value may be evicted earlier, but from that moment on no reader gets it. On disk it is
/// kept to the millisecond, rounded down.
public enum Expiration: Sendable, Equatable {
    /// It never expires.
    case never
    /// This many seconds from now; 0 expires at once, `.infinity` never.
    case seconds(Double)
    /// This many days of 86,400 seconds from now.
    case days(Int)
    /// This long from now.
    case after(Duration)
    /// At this moment; one in the past expires at once.
    case at(Date)
    /// At once.
    case expired

    /// The moment, nil for never.
    ///
    /// A span that reaches past the year 2262 means never.
    func moment(from now: Timestamp) throws(CacheError) -> Timestamp? {
        let moment = try boundedMoment(from: now)
        return moment == .distantFuture ? nil : moment
    }

    /// The same, with the end of time for what is beyond it.
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

    /// More seconds than a `Timestamp` can hold from now on.
    private static let longest = 1e10

    private static func negative(_ span: String) -> CacheError {
        CacheError(.invalidArgument, "expire after \(span): a lifetime can't be negative: use 0 or more")
    }
}

extension Expiration {
    /// What an access does to the expiration of a value.
    public enum OnAccess: Sendable, Equatable {
        /// Nothing.
        case keep
        /// From the access on, the value lives as long again as it was given when it was stored.
        case renew
        /// The value lives at least this long from the access on.
        case set(Duration)

        /// The sliding lifetime of a record with this expiration; nil if it does not slide.
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
        // A Date is a Double: beyond the range of nanoseconds in 64 bits only its side matters.
        if seconds >= 9.2e9 {
            self = .distantFuture
        } else if seconds <= -9.2e9 || seconds.isNaN {
            self = .distantPast
        } else {
            let whole = seconds.rounded(.down)
            // To the microsecond: a Date of these years is no finer, and what is below, cut off, would make a
            // whole millisecond one less.
            let microseconds = Int64(((seconds - whole) * 1e6).rounded())
            self.init(nanoseconds: Int64(whole) * 1_000_000_000 + microseconds * 1000)
        }
    }

    var date: Date {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Date(timeIntervalSince1970: Double(seconds) + Double(rest) / 1e9)
    }
}
