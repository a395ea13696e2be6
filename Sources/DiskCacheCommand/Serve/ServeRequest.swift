// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// A request to `diskcache serve`, decoded from its line.
///
/// Each operation reads the fields that it knows, and ignores all others, including those of future versions.
struct ServeRequest: Decodable {
    /// The identifier, which the answers repeat.
    let id: Identifier?
    /// The number of bytes that follow the line; nil if the field is missing, negative if it is invalid.
    let length: Int?
    let operation: String?
    let key: String?
    let keys: [String]?
    let file: String?
    /// The selected keys: those with a prefix, those with a tag, or all.
    let prefix: String?
    let tag: String?
    let all: Bool?
    /// Flags for optional behavior.
    let stale: Bool?
    let entry: Bool?
    let scan: Bool?
    let terms: ServeTerms
    /// The first error in the fields; nil if they are valid.
    var fault: ServeFault?

    /// Decodes a request.
    ///
    /// - Throws: Only if the line is not a JSON object.
    init(from decoder: any Decoder) throws {
        var fields = ServeFields(try decoder.container(keyedBy: ServeField.self))
        id = fields.read(.id, "a whole number or a string")
        length = fields.length()
        operation = fields.read(.op, "a string")
        key = fields.read(.key, "a string")
        keys = fields.read(.keys, "a list of strings")
        file = fields.read(.file, "a string")
        prefix = fields.read(.prefix, "a string")
        tag = fields.read(.tag, "a string")
        all = fields.read(.all, "true or false")
        stale = fields.read(.stale, "true or false")
        entry = fields.read(.entry, "true or false")
        scan = fields.read(.scan, "true or false")
        terms = ServeTerms(&fields)
        fault = fields.fault
    }

    /// The options of a read.
    var reading: ReadOptions { ReadOptions(acceptsStale: stale ?? false) }

    /// Returns the request's key.
    ///
    /// - Throws: ``ServeFault`` if it is missing.
    func theKey() throws -> String {
        guard let key else { throw ServeFault(.badRequest, "the field key is missing: give a key") }
        if key.isEmpty { throw ServeFault(.badRequest, "the key is empty: give a key") }
        return key
    }

    /// Returns the request's keys, one or several.
    ///
    /// - Throws: ``ServeFault`` if they are missing, or if one of them is empty.
    func theKeys() throws -> [String] {
        guard let keys else { return [try theKey()] }
        if key != nil { throw ServeFault(.badRequest, "key and keys can't be used together: give one") }
        if keys.contains("") { throw ServeFault(.badRequest, "a key is empty: give keys that are not empty") }
        return keys
    }

    /// Returns the file to read the value from or to write it to; nil if none is given.
    ///
    /// - Throws: ``ServeFault`` if the name is empty or contains a NUL.
    func theFile() throws -> String? {
        if file == "" { throw ServeFault(.badRequest, "file is empty: give the name of a file") }
        if file?.utf8.contains(0) ?? false {
            throw ServeFault(.badRequest, "file contains a NUL: give the name of a file")
        }
        return file
    }

    /// An identifier by which clients match answers to requests.
    enum Identifier: Codable, Equatable {
        case number(Int)
        case text(String)

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            do {
                self = .number(try value.decode(Int.self))
            } catch is DecodingError {
                self = .text(try value.decode(String.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            switch self {
            case .number(let number): try value.encode(number)
            case .text(let text): try value.encode(text)
            }
        }
    }
}
