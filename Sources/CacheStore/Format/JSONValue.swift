// SPDX-License-Identifier: Apache-2.0

/// Any value of JSON, RFC 8259: to keep what another version has written.
enum JSONValue: Sendable, Equatable, Codable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case list([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // Each kind is tried in turn; what is none of them the last one throws.
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .list(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .null: try Bool?.none.encode(to: encoder)
        case .bool(let value): try value.encode(to: encoder)
        // Whole numbers without a fraction.
        case .number(let value): try Int64(exactly: value)?.encode(to: encoder) ?? value.encode(to: encoder)
        case .string(let value): try value.encode(to: encoder)
        case .list(let value): try value.encode(to: encoder)
        case .object(let value): try value.encode(to: encoder)
        }
    }
}

/// What is wrong with a JSON text, or with a value in it.
struct JSONProblem: Error, Equatable {
    let words: String
}
