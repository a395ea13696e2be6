// SPDX-License-Identifier: Apache-2.0

import Platform

extension SignatureV4 {
    /// Returns a time in UTC, such as `20130524T000000Z`.
    static func text(_ time: Timestamp) -> String {
        let seconds = max(0, time.nanoseconds) / 1_000_000_000
        let (day, second) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let date = date(ofDay: day)
        return padded(date.year, to: 4) + padded(date.month, to: 2) + padded(date.day, to: 2) + "T"
            + padded(second / 3600, to: 2) + padded(second / 60 % 60, to: 2) + padded(second % 60, to: 2)
            + "Z"
    }

    private static func padded(_ number: Int64, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// Returns the date of a day, counted from the beginning of 1970, by Hinnant's algorithm (chrono-Compatible Low-Level
    /// Date Algorithms).
    private static func date(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // The algorithm counts eras of 400 years, which begin on March 1.
        let shifted = day + 719_468
        let (era, dayOfEra) = shifted.quotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
