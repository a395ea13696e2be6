// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// An entry as it is stored on a server with Bazel's HTTP cache protocol.
///
/// It is the message `ActionResult` of the Remote Execution API, reduced to the parts that a cache needs. The value is an
/// output file; a small value is inlined, which saves a round trip. The entry's record is the standard output. Servers
/// that validate such messages accept it: each file has a path and a digest, and the server has each file that is not
/// inlined under its digest.
struct ActionResult: Sendable, Equatable {
    /// The digest of the value.
    var digest: Digest
    /// The length of the value in bytes.
    var length: Int
    /// The value if it is inlined, else nil; never nil for an empty value after decoding.
    var contents: [UInt8]?
    /// The record of the entry.
    var record: [UInt8]

    /// The path of the output file that is the value; other files are ignored.
    private static let valuePath = Array("value".utf8)
    /// The maximum length of a message in bytes: bazel-remote accepts 4 MiB, the limit of gRPC.
    static let maximumSize = 4 << 20
    /// The maximum length of an inlined value in bytes.
    static let inlineLimit = 64 << 10
}

extension ActionResult {
    private static let filesField: UInt64 = 2
    private static let standardOutputField: UInt64 = 5
    private static let pathField: UInt64 = 1
    private static let digestField: UInt64 = 2
    private static let contentsField: UInt64 = 5
    private static let hashField: UInt64 = 1
    private static let sizeField: UInt64 = 2

    /// Returns the encoded message.
    func encoded() -> [UInt8] {
        var name: [UInt8] = []
        name.append(field: Self.hashField, bytes: digest.description.utf8)
        name.append(field: Self.sizeField, number: UInt64(length))
        var file: [UInt8] = []
        file.append(field: Self.pathField, bytes: Self.valuePath)
        file.append(field: Self.digestField, message: name)
        file.append(field: Self.contentsField, bytes: contents ?? [])
        var bytes: [UInt8] = []
        bytes.append(field: Self.filesField, message: file)
        bytes.append(field: Self.standardOutputField, bytes: record)
        return bytes
    }

    /// Decodes a message from ``encoded()`` or from another encoder.
    ///
    /// Skips unknown fields. Throws if there is no value, or if inlined contents do not match their digest. Needs memory of
    /// at most a small multiple of the message's length, even for hostile bytes.
    init(decoding bytes: [UInt8]) throws(WireFault) {
        guard bytes.count <= Self.maximumSize else { throw .tooLong }
        var found: ActionResult?
        var record: [UInt8] = []
        try Protobuf.readFields(of: bytes, 0..<bytes.count) { (field, value) throws(WireFault) in
            switch (field, value) {
            case (Self.filesField, .bytes(let range)):
                let value = try Self.value(bytes, range)
                found = found ?? value
            case (Self.standardOutputField, .bytes(let range)): record = Array(bytes[range])
            case (Self.filesField, _), (Self.standardOutputField, _): throw .malformed
            default: break
            }
        }
        guard var found else { throw .malformed }
        found.record = record
        self = found
    }

    /// Decodes the message `OutputFile`; returns nil if it is not the value.
    private static func value(_ bytes: [UInt8], _ range: Range<Int>) throws(WireFault) -> ActionResult? {
        var isValue = false
        var name: (digest: Digest, length: Int)?
        var contents: [UInt8]?
        try Protobuf.readFields(of: bytes, range) { (field, value) throws(WireFault) in
            switch (field, value) {
            case (pathField, .bytes(let range)): isValue = bytes[range].elementsEqual(valuePath)
            case (digestField, .bytes(let range)): name = try digest(bytes, range)
            // In proto3, empty contents can't be distinguished from missing ones.
            case (contentsField, .bytes(let range)): contents = range.isEmpty ? nil : Array(bytes[range])
            case (pathField, _), (digestField, _), (contentsField, _): throw .malformed
            default: break
            }
        }
        guard isValue else { return nil }
        guard let name else { throw .malformed }
        if name.length == 0 { contents = contents ?? [] }
        if let contents {
            guard contents.count == name.length, Digest(of: contents.span) == name.digest else {
                throw .wrongDigest
            }
        }
        return ActionResult(digest: name.digest, length: name.length, contents: contents, record: [])
    }

    /// Decodes the message `Digest`; throws ``WireFault/malformed`` for hash functions other than SHA-256, which can't be
    /// checked.
    private static func digest(
        _ bytes: [UInt8],
        _ range: Range<Int>
    ) throws(WireFault) -> (digest: Digest, length: Int) {
        var digest: Digest?
        var length = 0
        try Protobuf.readFields(of: bytes, range) { (field, value) throws(WireFault) in
            switch (field, value) {
            case (Self.hashField, .bytes(let range)):
                let digits = Array(bytes[range])
                digest = Digest(hexadecimal: digits.span)
            case (Self.sizeField, .number(let number)):
                guard let size = Int(exactly: number) else { throw .malformed }
                length = size
            case (Self.hashField, _), (Self.sizeField, _): throw .malformed
            default: break
            }
        }
        guard let digest else { throw .malformed }
        return (digest, length)
    }
}
