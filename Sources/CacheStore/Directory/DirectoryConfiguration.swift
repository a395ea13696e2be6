// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// What belongs to a directory and not to a process, as `config.json` in it states it: its limits, under the keys of
/// ``CacheLimits``, and keys of later versions, which are kept as they are.
package struct DirectoryConfiguration: Sendable, Equatable {
    package var limits = CacheLimits()
    private var others: [String: JSONValue] = [:]

    /// No limits, or these.
    package init(_ limits: CacheLimits = CacheLimits()) {
        self.limits = limits
        if limits.eventLogSize?.bytes == 0 { self.limits.eventLogSize = nil }
    }

    /// Keys that this version does not know.
    package var unknownKeys: [String] { others.keys.filter { $0 != Self.remoteKey }.sorted() }

    private static let remoteKey = "remote"

    /// What it says of stores on other machines, as JSON: whoever asks them reads it; nil: nothing.
    package var remote: [UInt8]? {
        guard let value = others[Self.remoteKey], value != .null else { return nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // It was decoded, so it can be encoded.
        return (try? encoder.encode(value)).map { [UInt8]($0) }
    }

    /// - Parameter json: an object; nil: there are none.
    /// - Returns: false for what is no JSON object.
    package mutating func setRemote(_ json: [UInt8]?) -> Bool {
        guard let json else {
            others[Self.remoteKey] = nil
            return true
        }
        guard json.isPlainText, json.nesting < Self.deepest,
            let value = try? JSONDecoder().decode([String: JSONValue].self, from: Data(json))
        else { return false }
        others[Self.remoteKey] = .object(value)
        return true
    }

    /// Why it can't be written and read again; nil: it can.
    package var problem: String? {
        var values = values
        do throws(JSONProblem) {
            _ = try CacheLimits(taking: &values)
            return nil
        } catch {
            return error.words
        }
    }

    /// Values in values: ours have one, what later versions may add will have a few.
    ///
    /// The parser goes as deep as the text does, on threads with little stack.
    private static let deepest = 16

    init(json: [UInt8]) throws(JSONProblem) {
        guard json.isPlainText, json.nesting <= Self.deepest else {
            throw JSONProblem(words: "it is not UTF-8, or nested more than \(Self.deepest) deep")
        }
        do {
            others = try JSONDecoder().decode([String: JSONValue].self, from: Data(json))
        } catch {
            throw JSONProblem(words: "it is not a JSON object")
        }
        limits = try CacheLimits(taking: &others)
        // As where the key is missing.
        if limits.eventLogSize?.bytes == 0 { limits.eventLogSize = nil }
        if limits.assumesLocal == false { limits.assumesLocal = nil }
        if limits.sharesMemory == true { limits.sharesMemory = nil }
    }

    /// Whether every limit that `given` has is here, as they are written.
    package func includes(_ given: DirectoryConfiguration) -> Bool {
        let present = values
        return given.values.allSatisfy { present[$0.key] == $0.value }
    }

    /// What is written.
    private var values: [String: JSONValue] {
        var written = limits
        written.minimumFree = limits.minimumFree?.rounded
        return others.merging(written.values) { $1 }
    }

    /// As ``init(json:)`` reads it from the file at `path`, for people to read as well.
    func json(for path: String) throws(CacheError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        do {
            return [UInt8](try encoder.encode(values)) + [UInt8(ascii: "\n")]
        } catch {
            throw CacheError(.badConfiguration, to: "write", path: path, detail: "\(error)")
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
        do throws(JSONProblem) {
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
        !contains(0) && String(validating: self, as: UTF8.self) != nil
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
