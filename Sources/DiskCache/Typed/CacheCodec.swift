// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// How values of a type are written to bytes and read back.
///
/// Equal values should make equal bytes: they are stored once then. What an older version of the program
/// has written must either decode or throw, which makes it a miss; so give a format a version where its
/// bytes could be misread.
public protocol CacheCodec<Value>: Sendable {
    /// What it encodes.
    associatedtype Value: Sendable

    /// The bytes to store.
    func encode(_ value: Value) throws -> Data

    /// The value that was stored as these bytes; throwing makes it a miss.
    func decode(_ data: Data) throws -> Value

    /// What the decoded value takes in memory, in the unit of the memory tier's cost limit: bytes.
    ///
    /// Default: the length of its stored form.
    func cost(of value: Value, encodedSize: Int) -> Int
}

extension CacheCodec {
    /// The length of the stored form.
    public func cost(of value: Value, encodedSize: Int) -> Int { encodedSize }
}

/// JSON (RFC 8259), with sorted keys so that equal values make equal bytes.
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

/// A binary property list: smaller than JSON where values are `Data`, dates or long numbers.
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

/// A value with a costly part that it can make again from the rest: a picture's pixels, a parsed tree.
///
/// When the system runs short of memory, the memory tier has values drop that part before it evicts any;
/// the next get makes it again. (What NSDiscardableContent is for.)
public protocol DiscardableValue: Sendable {
    /// The value without its costly part and what that takes in memory, in bytes; nil: there is nothing to
    /// drop.
    func discarded() -> (value: Self, cost: Int)?

    /// The value whole again; throwing has it decoded anew from its stored form.
    func restored() throws -> Self
}
