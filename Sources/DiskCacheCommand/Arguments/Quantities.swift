// SPDX-License-Identifier: Apache-2.0

package import DiskCache
import FoundationEssentials

/// Sizes and times as users write and read them.
package enum Quantity {
    /// Parses "512", "64K", "1.5M", "2G" or "1T", in powers of 1024; "KiB" and "KB" mean the same as "K".
    package static func size(_ text: String) throws(Failure) -> ByteCount {
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit = text.dropFirst(number.count).uppercased()
        let letters = ["", "K", "M", "G", "T", "P"]
        let position = letters.firstIndex { unit == $0 || unit == $0 + "B" || unit == $0 + "IB" && $0 != "" }
        guard let value = Double(number), let position else {
            throw .usage("invalid size '\(text)': write it like 512, 64K, 1.5M or 2G")
        }
        let bytes = value * Double(sign: .plus, exponent: 10 * position, significand: 1)
        // A larger number would lose precision in `config.json`.
        guard bytes < 0x1p53 else { throw .usage("\(text) is too large: the maximum is 8191T") }
        return ByteCount(Int64(bytes))
    }

    /// Parses "10%", or a size.
    static func freeSpace(_ text: String) throws(Failure) -> CacheLimits.FreeSpace {
        guard text.last == "%" else {
            do throws(Failure) {
                return .bytes(try size(text))
            } catch {
                throw .usage("invalid amount of free space '\(text)': write it like 10% or 2G")
            }
        }
        guard let percent = Double(text.dropLast()), (0...100) ~= percent else {
            throw .usage("invalid percentage '\(text)': write it like 10%")
        }
        return .percent(percent)
    }

    /// Returns "10%" or "2.0 GiB".
    static func text(_ space: CacheLimits.FreeSpace) -> String {
        switch space {
        case .bytes(let count): text(bytes: count.bytes)
        case .percent(let percent): percent == percent.rounded() ? "\(Int(percent))%" : "\(percent)%"
        }
    }

    /// Parses "90", "90s", "15m", "12h", "7d", "2w", "500ms", "1.5h" or "1h30m"; a bare number is seconds.
    ///
    /// If there are several units, each must be smaller than the one before it.
    package static func duration(_ text: String) throws(Failure) -> Duration {
        let units = ["ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800]
        var rest = text[...]
        var (span, smallest) = (Duration.zero, Double.infinity)
        repeat {
            let number = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            rest = rest.dropFirst(number.count)
            let letters = rest.prefix { $0.isASCII && $0.isLetter }
            rest = rest.dropFirst(letters.count)
            let isBare = letters.isEmpty && rest.isEmpty && smallest == .infinity
            guard let value = Double(number), let unit = isBare ? 1 : units[String(letters)], unit < smallest
            else { throw .usage("invalid time span '\(text)': write it like 90s, 15m, 1h30m or 7d") }
            // The limit ensures that a time that far before or after now fits into 64 bits of nanoseconds.
            if value * unit < 9e9 { span += .seconds(value * unit) }
            guard value * unit < 9e9, span < .seconds(9e9) else {
                throw .usage("\(text) is too long: the maximum is 104166d")
            }
            smallest = unit
        } while !rest.isEmpty
        return span
    }

    /// Parses a SHA-256 as `sha256sum` prints it, in lower or upper case, with an optional prefix "sha256:".
    package static func digest(_ text: String) throws(Failure) -> Digest {
        let lower = text.lowercased()
        let digits = lower.hasPrefix("sha256:") ? String(lower.dropFirst(7)) : lower
        if let digest = Digest(hexadecimal: digits) { return digest }
        throw .usage("invalid digest '\(text)': give the 64 hexadecimal digits that `sha256sum` prints")
    }

    /// Parses a non-negative whole number.
    package static func count(_ text: String) throws(Failure) -> Int {
        guard let count = Int(text), count >= 0 else {
            if !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isNumber }) {
                throw .usage("\(text) is too large: the maximum is \(Int.max)")
            }
            throw .usage("invalid number '\(text)': write it like 1000")
        }
        return count
    }

    /// Returns the two largest units: "2d 3h", "45s".
    package static func text(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        if seconds < 0 { return "-" + text(.zero - duration) }
        let units: [(Int64, String)] = [(86400, "d"), (3600, "h"), (60, "m"), (1, "s")]
        guard let lead = units.firstIndex(where: { seconds >= $0.0 }) else { return "0s" }
        let rest = seconds % units[lead].0
        let first = "\(seconds / units[lead].0)\(units[lead].1)"
        guard lead + 1 < units.count, rest >= units[lead + 1].0 else { return first }
        return first + " \(rest / units[lead + 1].0)\(units[lead + 1].1)"
    }

    /// Returns the time between two moments.
    static func text(from start: Date, to end: Date) -> String {
        text(.seconds(end.timeIntervalSince(start)))
    }

    /// Returns "3d ago", or "in 3d" for a future time, which may have been recorded before the clock was set back.
    static func ago(_ moment: Date, _ now: Date) -> String {
        // Fractions of a second are differences between clocks, and do not count as future.
        if moment.timeIntervalSince(now) < 1 { return text(from: min(moment, now), to: now) + " ago" }
        return "in \(text(from: now, to: moment))"
    }

    /// Returns "2026-01-31T12:00:00Z (3d ago)".
    static func moment(_ moment: Date, _ now: Date) -> String {
        "\(moment.formatted(.iso8601)) (\(ago(moment, now)))"
    }

    /// Returns "512 B", "4.0 KiB" or "1.5 GiB".
    package static func text(bytes: Int64) -> String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = ""
        // 1023.95 and more would be rounded to 1024.0 of the smaller unit.
        for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] where value >= 1023.95 {
            value /= 1024
            unit = next
        }
        return "\(tenths(value)) \(unit)"
    }

    /// Returns the number with one digit after the decimal point: "1.5".
    static func tenths(_ value: Double) -> String {
        let tenths = Int(saturating: value * 10)
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Returns "1 key" or "12 keys".
    static func count(_ count: Int, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }

    /// Returns "1 key, 2 values, 12.0 KiB".
    static func contents(keys: Int, values: Int, bytes: Int64) -> String {
        "\(count(keys, "key")), \(count(values, "value")), \(text(bytes: bytes))"
    }

    /// Returns "1 entry" or "12 345 entries".
    package static func grouped(_ count: Int, _ noun: String, _ plural: String? = nil) -> String {
        "\(grouped(count)) \(count == 1 ? noun : plural ?? noun + "s")"
    }

    /// Returns "1 234 567".
    package static func grouped(_ number: Int) -> String {
        let digits = Array(String(number.magnitude))
        var text = number < 0 ? "-" : ""
        for (place, digit) in digits.enumerated() {
            if place > 0, (digits.count - place) % 3 == 0 { text.append(" ") }
            text.append(digit)
        }
        return text
    }
}

extension Int {
    /// Creates the nearest whole number, clamped to the range of Int.
    package init(saturating value: Double) {
        self = value >= 0x1p63 ? .max : value < -0x1p63 ? .min : Int(value.rounded())
    }
}
