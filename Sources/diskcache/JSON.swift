// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// How every command writes JSON: one value on one line, keys in order, times in UTC to the millisecond, and nothing in
/// its strings that a terminal acts upon.
enum JSON {
    /// The value, with its newline.
    static func line(_ value: some Encodable) throws -> String {
        String(decoding: try encoder.encode(value), as: UTF8.self).escapedJSON + "\n"
    }

    private static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // The ready-made strategy leaves the milliseconds out, which expirations have.
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            // A whole millisecond may lie a trace below itself in a Double, and the style cuts off.
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            try container.encode(date.addingTimeInterval(1e-6).formatted(style))
        }
        return encoder
    }
}

extension Duration {
    /// Its length in seconds, as JSON has it.
    var inSeconds: Double {
        self / .seconds(1)
    }
}
