// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The configuration of a directory, stored in its `config.json`.
///
/// It contains the directory's limits, under the keys of ``CacheLimits``, and keys of later versions, which are kept
/// unchanged.
package struct DirectoryConfiguration: Sendable, Equatable {
    package var limits = CacheLimits()
    private var others: [String: JSONValue] = [:]

    /// Creates a configuration with the given limits.
    package init(_ limits: CacheLimits = CacheLimits()) {
        self.limits = limits
        if limits.eventLogSize?.bytes == 0 { self.limits.eventLogSize = nil }
    }

    /// The keys that this version does not know, sorted.
    package var unknownKeys: [String] { others.keys.filter { $0 != Self.remoteKey }.sorted() }

    private static let remoteKey = "remote"

    /// The configuration of remote stores, as JSON, parsed by the code that queries them; nil if missing.
    package var remote: [UInt8]? {
        guard let value = others[Self.remoteKey], value != .null else { return nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // The value was decoded from JSON, so it can be encoded.
        return (try? encoder.encode(value)).map { [UInt8]($0) }
    }

    /// Sets the configuration of remote stores.
    ///
    /// - Parameter json: An object; nil if there are no remote stores.
    /// - Returns: false if `json` is not a JSON object.
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

    /// Why the configuration can't be written and read again; nil if it can.
    package var problem: String? {
        var values = values
        do throws(JSONProblem) {
            _ = try CacheLimits(taking: &values)
            return nil
        } catch {
            return error.words
        }
    }

    /// The maximum nesting depth: present keys need one level, and keys of later versions a few.
    ///
    /// The parser recurses once for each level, on threads with small stacks.
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
        // These values mean the same as a missing key.
        if limits.eventLogSize?.bytes == 0 { limits.eventLogSize = nil }
        if limits.assumesLocal == false { limits.assumesLocal = nil }
        if limits.sharesMemory == true { limits.sharesMemory = nil }
    }

    /// Returns whether the configuration has all limits of `given`, compared as they are written.
    package func includes(_ given: DirectoryConfiguration) -> Bool {
        let present = values
        return given.values.allSatisfy { present[$0.key] == $0.value }
    }

    /// The values that are written.
    private var values: [String: JSONValue] {
        var written = limits
        written.minimumFree = limits.minimumFree?.rounded
        return others.merging(written.values) { $1 }
    }

    /// Returns the human-readable JSON for the file at `path`, which ``init(json:)`` reads.
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
    /// The maximum length of a configuration file.
    private static let longest = 64 * 1024

    /// Returns the configuration from the file at `path`, in `root`; a configuration without limits if the file is missing.
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
    /// Whether it is UTF-8 without NUL: the JSON parser also accepts encodings in which brackets have other bytes.
    fileprivate var isPlainText: Bool {
        !contains(0) && String(validating: self, as: UTF8.self) != nil
    }

    /// How deep the arrays and objects of a JSON text are nested.
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
