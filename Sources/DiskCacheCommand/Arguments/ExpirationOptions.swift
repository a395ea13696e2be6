// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// The options that determine how long a value is valid.
enum ExpirationOptions {
    static let list = """
        -t, --ttl SPAN  time to live: 90s, 1h30m, 7d or never
        --expires-at TIME  time of expiration: 2030-01-31T18:00:00Z, or +02:00 instead of Z
        --renew  restart the time to live at each access
        """

    static let exclusive = [["ttl", "expires-at"]]

    /// Returns the expiration that the options set.
    ///
    /// - Parameter usual: Returns the expiration if no option was given.
    static func expiration(
        _ arguments: Arguments,
        usual: () throws(Failure) -> Expiration? = { nil }
    ) throws(Failure) -> Expiration? {
        var expiration = try arguments.value("ttl", as: lifetime)
        if let moment = try arguments.value("expires-at", as: Self.moment) { expiration = .at(moment) }
        if expiration == nil { expiration = try usual() }
        if arguments.has("renew"), expiration == nil || expiration == .never {
            throw .usage(
                "\(arguments.command): --renew needs a value that expires: give --ttl or --expires-at too"
            )
        }
        return expiration
    }

    /// Returns the expiration in `$DISKCACHE_TTL`, which applies if no option is given; nil if the variable is not set or
    /// empty.
    static func usual(
        as parse: (String) throws(Failure) -> Expiration = ExpirationOptions.lifetime
    ) throws(Failure) -> Expiration? {
        guard let text = try Arguments.environment("DISKCACHE_TTL"), !text.isEmpty else { return nil }
        do throws(Failure) {
            return try parse(text)
        } catch {
            throw .usage("$DISKCACHE_TTL: \(error.message)")
        }
    }

    /// The last second that fits into 64 bits of nanoseconds since 1970: 2262-04-11T23:47:16Z.
    private static let latest = Date(timeIntervalSince1970: 9_223_372_036)

    /// Parses a span as ``Quantity/duration(_:)`` does, or "never".
    static func lifetime(_ text: String) throws(Failure) -> Expiration {
        if text == "never" { return .never }
        let span: Duration
        do throws(Failure) {
            span = try Quantity.duration(text)
        } catch {
            throw .usage(error.message + ", or never")
        }
        guard Date.now.addingTimeInterval(span.inSeconds) <= latest else {
            throw .usage("\(text) is too long: the latest expiration is 2262-04-11: give less, or never")
        }
        return .after(span)
    }

    /// Parses a time in ISO 8601: a date alone, or a date with a time and a time zone.
    static func moment(_ text: String) throws(Failure) -> Date {
        let full = text.utf8.count == 10 ? text + "T00:00:00Z" : text
        let wallClock = full.prefix(19) + "Z"
        let zone = full.dropFirst(19).drop { $0 == "." || $0.isASCII && $0.isNumber }
        // The parser accepts February 31, and any text after the time zone. So the zone is checked here, and the result
        // must format to the same digits.
        guard zone.wholeMatch(of: /Z|[+-][0-9]{2}:[0-9]{2}/) != nil,
            let wall = try? Date(String(wallClock), strategy: .iso8601),
            wall.formatted(.iso8601) == wallClock, let moment = try? Date(full, strategy: .iso8601)
        else { throw .usage("invalid time '\(text)': write it like 2030-01-31 or 2030-01-31T18:00:00Z") }
        guard moment <= latest else { throw .usage("\(text) is too late: the latest is 2262-04-11") }
        return moment
    }
}
