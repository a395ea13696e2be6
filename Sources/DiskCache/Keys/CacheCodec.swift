// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A codec that encodes values of a type as bytes and decodes them.
///
/// Equal values should encode to equal bytes, which are then stored once. Bytes that an older version of the program wrote
/// must either decode correctly or throw, which is a miss. So give a format a version number if its bytes could be misread.
public protocol CacheCodec<Value>: Sendable {
    /// The type of the values.
    associatedtype Value: Sendable

    /// Encodes a value as the bytes to store.
    func encode(_ value: Value) throws -> Data

    /// Decodes a value from its stored bytes.
    ///
    /// If this throws, the value is a miss; calls that compute values also remove it.
    func decode(_ data: Data) throws -> Value

    /// Returns the cost of the decoded value in the memory tier: its size in memory, in bytes.
    ///
    /// A value that is stored in memory only (``CacheConfiguration/Keeping/memoryOnly``) is not encoded: its `encodedSize`
    /// is 0. Default: `encodedSize`, the length of the value's stored form.
    func cost(of value: Value, encodedSize: Int) -> Int
}

extension CacheCodec {
    /// Returns the length of the stored form.
    public func cost(of value: Value, encodedSize: Int) -> Int { encodedSize }
}

/// A codec for JSON (RFC 8259), with sorted keys so that equal values encode to equal bytes.
public struct JSONCodec<Value: Codable & Sendable>: CacheCodec {
    /// Creates a codec with the encoder's defaults.
    public init() {}

    /// Encodes the value as JSON.
    public func encode(_ value: Value) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    /// Decodes the value from JSON.
    public func decode(_ data: Data) throws -> Value {
        try JSONDecoder().decode(Value.self, from: data)
    }
}

/// A value with a part that takes much memory and that it can rebuild from the rest, such as a picture's pixels or a parsed
/// tree.
///
/// Under memory pressure the memory tier drops this part of its values before it evicts any value; the next get rebuilds
/// the part. (NSDiscardableContent serves the same purpose.)
public protocol DiscardableValue: Sendable {
    /// Returns the value without the part that it can rebuild, and the bytes of memory that it then takes; nil if there is
    /// nothing to drop.
    func discarded() -> (value: Self, cost: Int)?

    /// Returns the complete value.
    ///
    /// If this throws, the value is decoded from its stored form.
    func restored() throws -> Self
}

/// The codec for unchanged bytes, used by ``SharedCache`` itself and its namespaces.
public struct BytesCodec: CacheCodec {
    init() {}

    /// Returns the bytes unchanged.
    public func encode(_ value: Data) -> Data { value }

    /// Returns the bytes unchanged.
    public func decode(_ data: Data) -> Data { data }

    /// Returns the number of bytes.
    public func cost(of value: Data, encodedSize: Int) -> Int { value.count }
}
