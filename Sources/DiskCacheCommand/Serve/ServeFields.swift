// SPDX-License-Identifier: Apache-2.0

/// The names of the fields of a request.
enum ServeField: String, CodingKey {
    case id, op, length, key, keys, file, prefix, tag, all, stale, entry, scan
    case ttl, expiresAt, renew, staleFor, ifAbsent, etag, lastModified, contentType, tags, metadata
}

/// The fields of a request, and the first error in them.
struct ServeFields {
    private let container: KeyedDecodingContainer<ServeField>
    private(set) var fault: ServeFault?

    init(_ container: KeyedDecodingContainer<ServeField>) {
        self.container = container
    }

    /// Returns a field; nil if it is missing, null or invalid.
    ///
    /// - Parameter what: The expected value, for the message.
    mutating func read<Value: Decodable>(_ name: ServeField, _ what: String) -> Value? {
        do {
            return try container.decodeIfPresent(Value.self, forKey: name)
        } catch {
            if fault == nil { fault = ServeFault(.badRequest, "\(name.rawValue) must be \(what)") }
            return nil
        }
    }

    /// Returns the number of bytes that follow the line; negative if the field is invalid.
    func length() -> Int? {
        do {
            return try container.decodeIfPresent(Int.self, forKey: .length)
        } catch {
            return -1
        }
    }
}
