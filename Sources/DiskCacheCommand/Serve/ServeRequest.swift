// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// One request to `diskcache serve`, as its line says.
///
/// Each operation looks at its own fields; all others are ignored, also those that there will be later.
struct ServeRequest: Decodable {
    /// Given back in the answers.
    let id: Identifier?
    /// How many bytes follow the line; nil: it does not say; negative: it can't be told.
    let length: Int?
    let operation: String?
    let key: String?
    let keys: [String]?
    let file: String?
    /// Which values: those of keys that begin so, those with a tag, or all.
    let prefix: String?
    let tag: String?
    let all: Bool?
    /// What is asked for beyond the usual.
    let stale: Bool?
    let entry: Bool?
    let scan: Bool?
    let terms: ServeTerms
    /// What is wrong with it, known before anything is done.
    var fault: ServeFault?

    enum Name: String, CodingKey {
        case id, op, length, key, keys, file, prefix, tag, all, stale, entry, scan
        case ttl, expiresAt, renew, staleFor, ifAbsent, etag, lastModified, contentType, tags, metadata
    }

    /// - Throws: only where it is no object.
    init(from decoder: any Decoder) throws {
        var fields = ServeFields(try decoder.container(keyedBy: Name.self))
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

    /// What a read of it accepts.
    var reading: ReadOptions { ReadOptions(acceptsStale: stale ?? false) }

    /// The key that it is about.
    ///
    /// - Throws: ``ServeFault`` where there is none.
    func theKey() throws -> String {
        guard let key else { throw ServeFault(.badRequest, "there is no key: give key") }
        if key.isEmpty { throw ServeFault(.badRequest, "the key is empty: give a key") }
        return key
    }

    /// The keys that it is about, one or several.
    ///
    /// - Throws: ``ServeFault`` where there is none, or one of them is empty.
    func theKeys() throws -> [String] {
        guard let keys else { return [try theKey()] }
        if key != nil { throw ServeFault(.badRequest, "there are key and keys: give one of them") }
        if keys.contains("") { throw ServeFault(.badRequest, "a key is empty: give keys that are not") }
        return keys
    }

    /// The file that the value comes from or goes to; nil where there is none.
    ///
    /// - Throws: ``ServeFault`` where its name is empty.
    func theFile() throws -> String? {
        if file == "" { throw ServeFault(.badRequest, "file is empty: give the name of a file") }
        if file?.utf8.contains(0) ?? false {
            throw ServeFault(.badRequest, "file has a NUL: give the name of a file")
        }
        return file
    }

    /// Tells answers apart.
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

/// The fields of a request, of which the first that is wrong is remembered.
struct ServeFields {
    private let container: KeyedDecodingContainer<ServeRequest.Name>
    private(set) var fault: ServeFault?

    init(_ container: KeyedDecodingContainer<ServeRequest.Name>) {
        self.container = container
    }

    /// A field; nil where it is missing, null or wrong.
    ///
    /// - Parameter what: what it has to be.
    mutating func read<Value: Decodable>(_ name: ServeRequest.Name, _ what: String) -> Value? {
        do {
            return try container.decodeIfPresent(Value.self, forKey: name)
        } catch {
            if fault == nil { fault = ServeFault(.badRequest, "\(name.rawValue) must be \(what)") }
            return nil
        }
    }

    /// The number of bytes that follow; negative where that can't be told.
    func length() -> Int? {
        do {
            return try container.decodeIfPresent(Int.self, forKey: .length)
        } catch {
            return -1
        }
    }
}
