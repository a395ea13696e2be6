// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// What belongs to a directory and not to a process: its limits, as `config.json` in it states them.
///
/// ```
/// {
///   "maximumSize": 2147483648,     bytes on disk, directories and all
///   "maximumEntries": 100000,
///   "minimumFree": "10%",          of the file system, or bytes
///   "maximumAge": 2592000,         seconds
///   "maximumIdleTime": 604800,
///   "maximumValueSize": 67108864,  bytes
///   "eventLog": 1048576,           bytes; missing or 0: no log is kept
///   "assumeLocal": true            the file system is local, though it does not look so
/// }
/// ```
///
/// Every key may be missing. Keys of later versions are kept as they are.
package struct DirectoryConfiguration: Sendable, Equatable {
    package var limits = SweepLimits()
    /// The length of the longest value that is accepted.
    package var maximumValueSize: Int64?
    /// Bytes that the log of removals may take; nil: none is kept.
    package var eventLogSize: Int64?
    /// Whether all who use the directory are on this machine, whatever its file system looks like; counts when it is opened.
    package var assumesLocal = false
    private var others: [String: JSONValue] = [:]

    /// No limits.
    package init() {}

    /// Keys that this version does not know.
    package var unknownKeys: [String] { others.keys.sorted() }

    /// Why it can't be written and read again; nil: it can.
    package var problem: String? {
        do throws(Problem) {
            _ = try DirectoryConfiguration(json: json())
            return nil
        } catch {
            return error.words
        }
    }

    /// What is wrong with the text of a configuration.
    struct Problem: Error, Equatable {
        let words: String
    }

    /// Values in values: ours have one, what later versions may add will have a few.
    ///
    /// The parser goes as deep as the text does, on threads with little stack.
    private static let deepest = 16

    init(json: [UInt8]) throws(Problem) {
        guard json.isPlainText, json.nesting <= Self.deepest else {
            throw Problem(words: "it is not UTF-8, or nested more than \(Self.deepest) deep")
        }
        do {
            others = try JSONDecoder().decode([String: JSONValue].self, from: Data(json))
        } catch {
            throw Problem(words: "it is not a JSON object")
        }
        let (bytes, seconds) = ("not a number of bytes", "not a number of seconds")
        limits.maximumSize = try take("maximumSize", bytes, \.whole)
        limits.maximumEntries = try take("maximumEntries", "not a number of entries", \.whole).map { Int($0) }
        limits.minimumFree = try take(
            "minimumFree",
            "neither a number of bytes nor a share like \"10%\"",
            \.floor
        )
        limits.maximumAge = try take("maximumAge", seconds, \.seconds)
        limits.maximumIdleTime = try take("maximumIdleTime", seconds, \.seconds)
        maximumValueSize = try take("maximumValueSize", bytes, \.whole)
        eventLogSize = try take("eventLog", bytes, \.whole).flatMap { $0 == 0 ? nil : $0 }
        assumesLocal = try take("assumeLocal", "neither true nor false", \.truth) ?? false
    }

    /// nil where there is no such key; what is there otherwise, and is not what `read` expects, is `form`.
    private mutating func take<Value>(
        _ key: String,
        _ form: String,
        _ read: (JSONValue) -> Value?
    ) throws(Problem) -> Value? {
        guard let value = others.removeValue(forKey: key), value != .null else { return nil }
        guard let found = read(value) else { throw Problem(words: "\(key) is \(form)") }
        return found
    }

    /// Whether every limit that `given` has is here, as they are written.
    package func includes(_ given: DirectoryConfiguration) -> Bool {
        let present = values
        return given.values.allSatisfy { present[$0.key] == $0.value }
    }

    /// What is written.
    private var values: [String: JSONValue] {
        var values = others
        values["maximumSize"] = limits.maximumSize.map { .number(Double($0)) }
        values["maximumEntries"] = limits.maximumEntries.map { .number(Double($0)) }
        values["minimumFree"] = limits.minimumFree.map { JSONValue($0) }
        values["maximumAge"] = limits.maximumAge.map { .number($0 / .seconds(1)) }
        values["maximumIdleTime"] = limits.maximumIdleTime.map { .number($0 / .seconds(1)) }
        values["maximumValueSize"] = maximumValueSize.map { .number(Double($0)) }
        values["eventLog"] = eventLogSize.map { .number(Double($0)) }
        if assumesLocal { values["assumeLocal"] = .bool(true) }
        return values
    }

    /// As ``init(json:)`` reads it, for people to read as well.
    func json() throws(Problem) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        do {
            return [UInt8](try encoder.encode(values)) + [UInt8(ascii: "\n")]
        } catch {
            throw Problem(words: "\(error)")
        }
    }
}

extension DirectoryConfiguration {
    /// Longer files are no configuration.
    private static let longest = 64 * 1024

    /// What the file at `path`, in `root`, says; no limits where there is none.
    static func read(
        in root: borrowing Directory,
        _ path: String
    ) throws(CacheError) -> DirectoryConfiguration {
        let bytes: [UInt8]??
        do throws(Errno) {
            bytes = try ifExists { () throws(Errno) in
                try root.open(StoreLayout.configuration, .readOnly).readToEnd(limit: longest)
            }
        } catch {
            if let words = error.wordsOfNoFile { throw unreadable(path, words) }
            throw CacheError(errno: error, "read", path: path)
        }
        guard let bytes else { return DirectoryConfiguration() }
        guard let bytes else { throw unreadable(path, "it is too long") }
        do throws(Problem) {
            return try DirectoryConfiguration(json: bytes)
        } catch {
            throw unreadable(path, error.words)
        }
    }

    private static func unreadable(_ path: String, _ words: String) -> CacheError {
        CacheError(.badConfiguration, to: "read", path: path, detail: words)
    }
}

extension [UInt8] {
    /// Whether it is UTF-8 without NUL: JSON in other encodings, which the parser knows too, has other brackets.
    fileprivate var isPlainText: Bool {
        guard !contains(0) else { return false }
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: span)
            return true
        } catch {
            return false
        }
    }

    /// How deep arrays and objects of a JSON text lie in each other.
    fileprivate var nesting: Int {
        var (depth, deepest) = (0, 0)
        var (isString, isEscaped) = (false, false)
        for byte in self {
            switch byte {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\") where isString: isEscaped = true
            case UInt8(ascii: "\""): isString.toggle()
            case _ where isString: continue
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: continue
            }
            deepest = Swift.max(deepest, depth)
        }
        return deepest
    }
}

extension JSONValue {
    /// A number as a Double holds it exactly: up to 8 PiB.
    fileprivate var whole: Int64? {
        guard case .number(let number) = self, let whole = Int64(exactly: number), (0..<1 << 53) ~= whole
        else { return nil }
        return whole
    }

    /// So long that the moment before still fits 64 bits of nanoseconds.
    fileprivate var seconds: Duration? {
        guard case .number(let number) = self, (0..<9e9) ~= number else { return nil }
        return .seconds(number)
    }

    fileprivate var truth: Bool? {
        guard case .bool(let truth) = self else { return nil }
        return truth
    }

    fileprivate var floor: FreeSpaceFloor? {
        guard case .string(let text) = self else { return whole.map { .bytes($0) } }
        guard text.last == "%", let percent = Double(text.dropLast()), (0...100) ~= percent else {
            return nil
        }
        return .share(percent / 100)
    }

    fileprivate init(_ floor: FreeSpaceFloor) {
        switch floor {
        case .bytes(let bytes): self = .number(Double(bytes))
        case .share(let share):
            // Hundredths of a per cent; without the fraction where there is none.
            let percent = (share * 10_000).rounded() / 100
            self = .string(percent == percent.rounded() ? "\(Int(percent))%" : "\(percent)%")
        }
    }
}

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
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        // Without a fraction as a whole number, as people write it.
        case .number(let value):
            if let whole = Int64(exactly: value) {
                try container.encode(whole)
            } else {
                try container.encode(value)
            }
        case .string(let value): try container.encode(value)
        case .list(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}
