// SPDX-License-Identifier: Apache-2.0

/// One thing that a diagnosis looked at.
package struct Finding: Sendable, Equatable, Codable {
    /// How much it matters.
    package enum Level: String, Sendable, Codable {
        /// As it should be.
        case fine
        /// It works, but in a second-best way that is slower or larger.
        case fallback
        /// Something to do.
        case risk
    }

    /// What was looked at: "file system".
    package let subject: String
    package let level: Level
    /// What was found.
    package let state: String
    /// What to do about it, or what it costs; nil where all is fine.
    package let advice: String?
}

extension Finding {
    static func fine(_ subject: String, _ state: String) -> Finding {
        Finding(subject: subject, level: .fine, state: state, advice: nil)
    }

    static func fallback(_ subject: String, _ state: String, _ advice: String) -> Finding {
        Finding(subject: subject, level: .fallback, state: state, advice: advice)
    }

    static func risk(_ subject: String, _ state: String, _ advice: String) -> Finding {
        Finding(subject: subject, level: .risk, state: state, advice: advice)
    }
}

/// Numbers as findings write them.
enum Words {
    /// "512 B", "3.1 MiB".
    static func bytes(_ count: Int64) -> String {
        var value = Double(count)
        var unit = "B"
        for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] where abs(value) >= 1023.95 {
            value /= 1024
            unit = next
        }
        if unit == "B" { return "\(count) B" }
        let tenths = Int((abs(value) * 10).rounded())
        return "\(value < 0 ? "-" : "")\(tenths / 10).\(tenths % 10) \(unit)"
    }

    /// "45 s", "12 min", "3 h", "9 d".
    static func span(_ duration: Duration) -> String {
        let seconds = abs(duration.components.seconds)
        let units: [(Int64, String)] = [(2 * 86400, "d"), (2 * 3600, "h"), (120, "min")]
        guard let unit = units.first(where: { seconds >= $0.0 }) else { return "\(seconds) s" }
        return "\(seconds / (unit.1 == "d" ? 86400 : unit.1 == "h" ? 3600 : 60)) \(unit.1)"
    }
}
