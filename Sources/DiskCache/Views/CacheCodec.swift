// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// How values of a type are written to bytes and read back.
///
/// Equal values should give equal bytes, which are then stored once. What an older version of the program has
/// written must either decode or throw, which makes it a miss; so give a format a version number if its bytes
/// could be misread.
public protocol CacheCodec<Value>: Sendable {
    /// The type that it encodes.
    associatedtype Value: Sendable

    /// The bytes to store.
    func encode(_ value: Value) throws -> Data

    /// The value that was stored as these bytes. Throwing makes it a miss, and calls that compute remove it.
    func decode(_ data: Data) throws -> Value

    /// How much memory the decoded value takes, in bytes, the unit of the memory tier's cost limit.
    ///
    /// A value that is kept in memory alone (``CacheConfiguration/Keeping/memoryOnly``) is not encoded: its `encodedSize`
    /// is 0. Default: `encodedSize`, the length of its stored form.
    func cost(of value: Value, encodedSize: Int) -> Int
}

extension CacheCodec {
    /// The length of the stored form.
    public func cost(of value: Value, encodedSize: Int) -> Int { encodedSize }
}

/// JSON (RFC 8259), with sorted keys so that equal values give equal bytes.
public struct JSONCodec<Value: Codable & Sendable>: CacheCodec {
    /// A codec with the encoder's defaults.
    public init() {}

    /// The value as JSON.
    public func encode(_ value: Value) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    /// The value from JSON.
    public func decode(_ data: Data) throws -> Value {
        try JSONDecoder().decode(Value.self, from: data)
    }
}

/// A binary property list: smaller than JSON for values with `Data`, dates or long numbers.
public struct PropertyListCodec<Value: Codable & Sendable>: CacheCodec {
    /// A codec with the encoder's defaults.
    public init() {}

    /// The value as a binary property list.
    public func encode(_ value: Value) throws -> Data {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return try encoder.encode(value)
    }

    /// The value from a property list.
    public func decode(_ data: Data) throws -> Value {
        try PropertyListDecoder().decode(Value.self, from: data)
    }
}

/// A value with a costly part that it can make again from the rest, such as a picture's pixels or a parsed
/// tree.
///
/// When the system runs short of memory, the memory tier drops that part of its values before it evicts any;
/// the next get makes it again. (The purpose of NSDiscardableContent.)
public protocol DiscardableValue: Sendable {
    /// The value without its costly part, and how many bytes of memory that takes; nil if there is nothing to
    /// drop.
    func discarded() -> (value: Self, cost: Int)?

    /// The whole value again. If this throws, the value is decoded from its stored form.
    func restored() throws -> Self
}

/// Bytes as they are: the codec of the values of ``SharedCache`` itself, and of its namespaces.
public struct BytesCodec: CacheCodec {
    init() {}

    /// The value.
    public func encode(_ value: Data) -> Data { value }

    /// The value.
    public func decode(_ data: Data) -> Data { data }

    /// The number of bytes.
    public func cost(of value: Data, encodedSize: Int) -> Int { value.count }
}
