// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The JSON format of all commands.
///
/// A value takes one line, with sorted keys, and times in UTC with milliseconds. Strings contain no characters that a
/// terminal interprets.
package enum JSON {
    /// Returns the value as one line, including the newline.
    package static func line(_ value: some Encodable) throws -> String {
        String(decoding: try encoder.encode(value), as: UTF8.self).escapedJSON + "\n"
    }

    /// An object that combines the fields of other values with additional fields; nil fields are omitted.
    package struct Object: Encodable, ExpressibleByDictionaryLiteral {
        private var parts: [any Encodable]
        private var fields: [(name: String, value: any Encodable)] = []

        package init(_ parts: any Encodable...) {
            self.parts = parts
        }

        package init(dictionaryLiteral fields: (String, (any Encodable)?)...) {
            parts = []
            self.fields = fields.compactMap { name, value in value.map { (name, $0) } }
        }

        package func encode(to encoder: any Encoder) throws {
            for part in parts { try part.encode(to: encoder) }
            var container = encoder.container(keyedBy: Name.self)
            for (name, value) in fields { try container.encode(value, forKey: Name(stringValue: name)) }
        }

        private struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }

            init(stringValue: String) {
                self.stringValue = stringValue
            }

            init?(intValue: Int) { nil }
        }
    }

    private static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // The built-in strategy omits the milliseconds that expirations have.
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            // The Double of a whole millisecond may be slightly too small, and the style rounds down.
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            try container.encode(date.addingTimeInterval(1e-6).formatted(style))
        }
        return encoder
    }
}

extension Duration {
    /// The length in seconds, as used in JSON.
    package var inSeconds: Double {
        // Dividing durations would not return the nearest number: 20 days as 1728000.0000000002.
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
