// SPDX-License-Identifier: Apache-2.0

/// Limits as JSON, in `config.json` and elsewhere.
///
/// ```
/// {
///   "maximumSize": 2147483648,     bytes on disk, including directories
///   "maximumEntries": 100000,
///   "minimumFree": "10%",          of the file system, or bytes
///   "maximumAge": 2592000,         seconds
///   "maximumIdleTime": 604800,
///   "maximumValueSize": 67108864,  bytes
///   "eventLog": 1048576,           bytes; missing or 0: no log is kept
///   "assumeLocal": true,           the file system is local, though not recognized as such
///   "shareMemory": false           processes do not use a file in /dev/shm
/// }
/// ```
///
/// All keys are optional.
extension CacheLimits: Codable {
    /// Creates limits from the values of a JSON object and removes those values from it.
    ///
    /// Other values stay in the object. null means no limit.
    init(taking values: inout [String: JSONValue]) throws(JSONProblem) {
        let (bytes, seconds) = ("not a number of bytes", "not a number of seconds")
        maximumSize = try values.take("maximumSize", bytes, \.byteCount)
        maximumEntries = try values.take("maximumEntries", "not a number of entries", \.whole).map { Int($0) }
        minimumFree = try values.take("minimumFree", JSONValue.freeSpaceForm, \.freeSpace)
        maximumAge = try values.take("maximumAge", seconds, \.seconds)
        maximumIdleTime = try values.take("maximumIdleTime", seconds, \.seconds)
        maximumValueSize = try values.take("maximumValueSize", bytes, \.byteCount)
        eventLogSize = try values.take("eventLog", bytes, \.byteCount)
        assumesLocal = try values.take("assumeLocal", "neither true nor false", \.truth)
        sharesMemory = try values.take("shareMemory", "neither true nor false", \.truth)
    }

    /// The limits that are set, as the values of a JSON object; ``init(taking:)`` reads them.
    var values: [String: JSONValue] {
        var values: [String: JSONValue] = [:]
        values["maximumSize"] = maximumSize.map { JSONValue($0) }
        values["maximumEntries"] = maximumEntries.map { .number(Double($0)) }
        values["minimumFree"] = minimumFree.map { JSONValue($0) }
        values["maximumAge"] = maximumAge.map { JSONValue($0) }
        values["maximumIdleTime"] = maximumIdleTime.map { JSONValue($0) }
        values["maximumValueSize"] = maximumValueSize.map { JSONValue($0) }
        values["eventLog"] = eventLogSize.map { JSONValue($0) }
        values["assumeLocal"] = assumesLocal.map { .bool($0) }
        values["shareMemory"] = sharesMemory.map { .bool($0) }
        return values
    }

    /// Reads the output of ``encode(to:)``.
    ///
    /// Rejects impossible limits: negative numbers, 8 PiB and more, 285 years and more.
    public init(from decoder: any Decoder) throws {
        var values = try [String: JSONValue](from: decoder)
        do throws(JSONProblem) {
            try self.init(taking: &values)
        } catch {
            let container = try decoder.singleValueContainer()
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.words)
        }
    }

    /// Writes the keys of `config.json`, with durations in seconds; limits that are nil are omitted.
    public func encode(to encoder: any Encoder) throws {
        try values.encode(to: encoder)
    }
}

extension CacheLimits.FreeSpace: Codable {
    /// Reads a number of bytes, or a share such as "10%".
    public init(from decoder: any Decoder) throws {
        guard let space = try JSONValue(from: decoder).freeSpace else {
            let container = try decoder.singleValueContainer()
            let words = "it is \(JSONValue.freeSpaceForm)"
            throw DecodingError.dataCorruptedError(in: container, debugDescription: words)
        }
        self = space
    }

    /// Writes a number of bytes, or a share such as "10%".
    public func encode(to encoder: any Encoder) throws {
        try JSONValue(self).encode(to: encoder)
    }
}

extension [String: JSONValue] {
    /// Removes and reads a value; returns nil if it is missing or null.
    ///
    /// - Throws: An error that ends with `form` if `read` does not accept the value.
    fileprivate mutating func take<Limit>(
        _ key: String,
        _ form: String,
        _ read: (JSONValue) -> Limit?
    ) throws(JSONProblem) -> Limit? {
        guard let value = removeValue(forKey: key), value != .null else { return nil }
        guard let found = read(value) else { throw JSONProblem(words: "\(key) is \(form)") }
        return found
    }
}

extension JSONValue {
    /// The value, if it is a whole number from 0 that a Double represents exactly, below 2⁵³ (8 PiB).
    fileprivate var whole: Int64? {
        guard case .number(let number) = self, let whole = Int64(exactly: number), (0..<1 << 53) ~= whole
        else { return nil }
        return whole
    }

    fileprivate var byteCount: ByteCount? { whole.map { ByteCount($0) } }

    fileprivate init(_ count: ByteCount) {
        self = .number(Double(count.bytes))
    }

    /// Creates a number of seconds.
    fileprivate init(_ span: Duration) {
        // Dividing durations would not return the nearest number: 20 days as 1728000.0000000002.
        let (seconds, attoseconds) = span.components
        self = .number(Double(seconds) + Double(attoseconds) / 1e18)
    }

    /// The value as a number of seconds, if it is not negative and below 9 · 10⁹ (285 years).
    ///
    /// The present time minus such a duration fits in 64 bits of nanoseconds.
    fileprivate var seconds: Duration? {
        guard case .number(let number) = self, (0..<9e9) ~= number else { return nil }
        return .seconds(number)
    }

    fileprivate var truth: Bool? {
        guard case .bool(let truth) = self else { return nil }
        return truth
    }

    /// The error text for a value whose ``freeSpace`` is nil.
    fileprivate static let freeSpaceForm = "neither a number of bytes nor a share like \"10%\""

    fileprivate var freeSpace: CacheLimits.FreeSpace? {
        guard case .string(let text) = self else { return byteCount.map { .bytes($0) } }
        guard text.last == "%", let percent = Double(text.dropLast()), (0...100) ~= percent else {
            return nil
        }
        return .percent(percent)
    }

    fileprivate init(_ space: CacheLimits.FreeSpace) {
        switch space {
        case .bytes(let bytes): self.init(bytes)
        // Write "10%", not "10.0%".
        case .percent(let percent): self = .string(Int(exactly: percent).map { "\($0)%" } ?? "\(percent)%")
        }
    }
}

/// Any JSON value (RFC 8259), so that values written by another version are preserved.
enum JSONValue: Sendable, Equatable, Codable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case list([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // Each kind is tried in turn; the last one throws if none matches.
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
        // Write whole numbers without a fraction.
        case .number(let value): try Int64(exactly: value)?.encode(to: encoder) ?? value.encode(to: encoder)
        case .string(let value): try value.encode(to: encoder)
        case .list(let value): try value.encode(to: encoder)
        case .object(let value): try value.encode(to: encoder)
        }
    }
}

/// A problem with a JSON text, or with a value in it.
struct JSONProblem: Error, Equatable {
    let words: String
}
