// SPDX-License-Identifier: Apache-2.0

/// An HTTP date in whole seconds since the beginning of 1970, UTC.
package struct HTTPDate: Sendable, Hashable, Comparable {
    /// The valid range: the years 0 to 9999, which HTTP's date formats can express.
    ///
    /// Sums and differences of a few dates in this range don't overflow.
    static let range = -62_167_219_200...253_402_300_799

    /// Seconds since the beginning of 1970; negative for earlier dates.
    package let seconds: Int

    /// Creates the date this many seconds after the beginning of 1970, clamped to the valid range.
    package init(seconds: Int) {
        self.seconds = min(max(seconds, Self.range.lowerBound), Self.range.upperBound)
    }

    package static func < (left: HTTPDate, right: HTTPDate) -> Bool { left.seconds < right.seconds }

    /// Returns the number of seconds from `earlier` to this date.
    package func since(_ earlier: HTTPDate) -> Int { seconds - earlier.seconds }

    /// Returns the date this many seconds later, clamped to the valid range.
    package func adding(_ span: Int) -> HTTPDate {
        let (sum, isBeyond) = seconds.addingReportingOverflow(span)
        return HTTPDate(seconds: isBeyond ? (span < 0 ? .min : .max) : sum)
    }

    private static let weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    private static let longWeekdays = [
        "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
    ]
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
}

extension HTTPDate {
    /// Parses one of the three date formats of RFC 9110, section 5.6.7; returns nil for any other text.
    ///
    /// Letters may have either case (RFC 9111, section 4.2); the time zone must be GMT. A two-digit year that seems to be
    /// more than 50 years after `now` counts as a year of the previous century.
    package init?(_ text: String, now: HTTPDate) {
        let parts = HTTPText.lowercased(text).split(separator: " ", omittingEmptySubsequences: false)
            .map(String.init)
        guard let first = parts.first else { return nil }
        let moment: Int?
        if first.hasSuffix(",") {
            moment = parts.count == 6 ? Self.fixed(parts) : Self.obsolete(parts, now: now)
        } else {
            moment = Self.asctime(parts)
        }
        guard let moment else { return nil }
        self.init(seconds: moment)
    }

    /// Parses an IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func fixed(_ parts: [String]) -> Int? {
        guard weekdays.contains(String(parts[0].dropLast())), parts[1].utf8.count == 2,
            parts[3].utf8.count == 4, parts[5] == "gmt", let year = number(parts[3])
        else { return nil }
        return moment(year: year, month: parts[2], day: parts[1], time: parts[4])
    }

    /// Parses a date in the format of RFC 850, such as `Sunday, 06-Nov-94 08:49:37 GMT`.
    private static func obsolete(_ parts: [String], now: HTTPDate) -> Int? {
        guard parts.count == 4, longWeekdays.contains(String(parts[0].dropLast())), parts[3] == "gmt" else {
            return nil
        }
        let date = parts[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard date.count == 3, date[0].utf8.count == 2, date[2].utf8.count == 2, let short = number(date[2])
        else { return nil }
        let thisYear = civil(day: floored(now.seconds, by: 86_400)).year
        var year = floored(thisYear, by: 100) * 100 + short
        if year > thisYear + 50 { year -= 100 }
        if year <= thisYear - 50 { year += 100 }
        return moment(year: year, month: date[1], day: date[0], time: parts[2])
    }

    /// Parses a date in the format of `asctime`, such as `Sun Nov  6 08:49:37 1994`.
    private static func asctime(_ parts: [String]) -> Int? {
        // Days below 10 are padded with a space, which the split turns into an empty part.
        let isShort = parts.count == 6 && parts[2].isEmpty
        guard isShort || parts.count == 5 else { return nil }
        let day = isShort ? "0" + parts[3] : parts[2]
        guard weekdays.contains(parts[0]), day.utf8.count == 2, let last = parts.last, last.utf8.count == 4,
            let year = number(last)
        else { return nil }
        return moment(year: year, month: parts[1], day: day, time: parts[parts.count - 2])
    }

    private static func moment(year: Int, month: String, day: String, time: String) -> Int? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard let month = months.firstIndex(of: month), let day = number(day), clock.count == 3,
            clock.allSatisfy({ $0.utf8.count == 2 }), let hour = number(clock[0]),
            let minute = number(clock[1]), let second = number(clock[2]), hour < 24, minute < 60,
            second <= 60, day >= 1
        else { return nil }
        let days = Self.days(year: year, month: month + 1, day: day)
        guard civil(day: days) == (year, month + 1, day) else { return nil }
        return days * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ text: String) -> Int? { HTTPText.isDigits(text) ? Int(text) : nil }
}

extension HTTPDate {
    /// The date in IMF-fixdate, the format for sending dates.
    package var text: String {
        let day = Self.floored(seconds, by: 86_400)
        let rest = seconds - day * 86_400
        let date = Self.civil(day: day)
        // The first day of 1970 was a Thursday.
        let weekday = Self.capitalized(Self.weekdays[day + 4 - Self.floored(day + 4, by: 7) * 7])
        let month = Self.capitalized(Self.months[date.month - 1])
        let time = [rest / 3600, rest / 60 % 60, rest % 60].map { Self.padded($0, 2) }.joined(separator: ":")
        return "\(weekday), \(Self.padded(date.day, 2)) \(month) \(Self.padded(date.year, 4)) \(time) GMT"
    }

    private static func capitalized(_ text: String) -> String {
        text.prefix(1).uppercased() + text.dropFirst()
    }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    /// Divides and rounds down, also for negative numbers.
    private static func floored(_ number: Int, by divisor: Int) -> Int {
        number >= 0 ? number / divisor : -((divisor - 1 - number) / divisor)
    }

    /// Returns the number of days since the beginning of 1970, in the Gregorian calendar.
    ///
    /// In the computation, years begin in March, so that the leap day is the last day of a year.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let era = floored(year, by: 400)
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(day: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = day + 719_468
        let era = floored(shifted, by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
