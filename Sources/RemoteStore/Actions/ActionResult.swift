// SPDX-License-Identifier: Apache-2.0

package import CacheStore

/// An entry as it is stored on a server with Bazel's HTTP cache protocol.
///
/// It is the message `ActionResult` of the Remote Execution API, reduced to the parts that a cache needs. The value is an
/// output file; a small value is inlined, which saves a round trip. The entry's record is the standard output. Servers
/// that validate such messages accept it: each file has a path and a digest, and the server has each file that is not
/// inlined under its digest.
package struct ActionResult: Sendable, Equatable {
    /// An output file.
    package struct File: Sendable, Equatable {
        package var path: String
        package var digest: Digest
        /// The length of the file in bytes.
        package var length: Int
        /// The bytes if they are inlined, else nil; never nil for an empty file.
        package var contents: [UInt8]?
        package var isExecutable: Bool

        package init(
            path: String,
            digest: Digest,
            length: Int,
            contents: [UInt8]?,
            isExecutable: Bool = false
        ) {
            self.path = path
            self.digest = digest
            self.length = length
            self.contents = length == 0 ? [] : contents
            self.isExecutable = isExecutable
        }
    }

    /// The path of the output file that is the value.
    package static let valuePath = "value"
    /// The maximum length of a message in bytes: bazel-remote accepts 4 MiB, the limit of gRPC.
    package static let maximumSize = 4 << 20
    /// The maximum length of an inlined value in bytes.
    package static let inlineLimit = 64 << 10
    /// The maximum number of files in a decoded message; this cache writes one.
    static let mostFiles = 1024

    package var files: [File]
    package var exitCode: Int32 = 0
    package var standardOutput: [UInt8] = []

    package init(files: [File], exitCode: Int32 = 0, standardOutput: [UInt8] = []) {
        self.files = files
        self.exitCode = exitCode
        self.standardOutput = standardOutput
    }

    /// The file with the value; nil if there is none; other files are ignored.
    package var value: File? { files.first { $0.path == Self.valuePath } }
}

extension ActionResult {
    private static let filesField: UInt64 = 2
    private static let exitCodeField: UInt64 = 4
    private static let standardOutputField: UInt64 = 5

    /// Returns the encoded message.
    package func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        for file in files { bytes.append(field: Self.filesField, message: file.encoded()) }
        bytes.append(field: Self.exitCodeField, number: UInt64(bitPattern: Int64(exitCode)))
        bytes.append(field: Self.standardOutputField, bytes: standardOutput)
        return bytes
    }

    /// Decodes a message from ``encoded()`` or from another encoder.
    ///
    /// Skips unknown fields. Throws if inlined contents do not match their digest. Needs memory of at most a small
    /// multiple of the message's length, even for hostile bytes.
    package init(decoding bytes: [UInt8]) throws(WireFault) {
        guard bytes.count <= Self.maximumSize else { throw .tooLong }
        var result = ActionResult(files: [])
        try Protobuf.readFields(of: bytes, 0..<bytes.count) { (field, value) throws(WireFault) in
            switch (field, value) {
            case (Self.filesField, .bytes(let range)):
                guard result.files.count < Self.mostFiles else { throw .tooLong }
                result.files.append(try File(decoding: bytes, range))
            case (Self.exitCodeField, .number(let number)):
                result.exitCode = Int32(truncatingIfNeeded: number)
            case (Self.standardOutputField, .bytes(let range)):
                result.standardOutput = Array(bytes[range])
            case (Self.filesField, _), (Self.exitCodeField, _), (Self.standardOutputField, _):
                throw .malformed
            default: break
            }
        }
        self = result
    }
}

extension ActionResult.File {
    private static let pathField: UInt64 = 1
    private static let digestField: UInt64 = 2
    private static let executableField: UInt64 = 4
    private static let contentsField: UInt64 = 5
    private static let hashField: UInt64 = 1
    private static let sizeField: UInt64 = 2

    fileprivate func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(field: Self.pathField, bytes: path.utf8)
        var named: [UInt8] = []
        named.append(field: Self.hashField, bytes: digest.description.utf8)
        named.append(field: Self.sizeField, number: UInt64(length))
        bytes.append(field: Self.digestField, message: named)
        bytes.append(field: Self.executableField, number: isExecutable ? 1 : 0)
        bytes.append(field: Self.contentsField, bytes: contents ?? [])
        return bytes
    }

    fileprivate init(decoding bytes: [UInt8], _ range: Range<Int>) throws(WireFault) {
        var path: String?
        var name: (digest: Digest, length: Int)?
        var isExecutable = false
        var contents: [UInt8]?
        try Protobuf.readFields(of: bytes, range) { (field, value) throws(WireFault) in
            switch (field, value) {
            case (Self.pathField, .bytes(let range)):
                guard let text = String(validating: bytes[range], as: UTF8.self) else { throw .malformed }
                path = text
            case (Self.digestField, .bytes(let range)): name = try Self.digest(bytes, range)
            case (Self.executableField, .number(let number)): isExecutable = number != 0
            case (Self.contentsField, .bytes(let range)): contents = Array(bytes[range])
            case (Self.pathField, _), (Self.digestField, _), (Self.executableField, _),
                (Self.contentsField, _):
                throw .malformed
            default: break
            }
        }
        guard let path, !path.isEmpty, let name else { throw .malformed }
        // In proto3, empty contents can't be distinguished from missing ones.
        if contents?.isEmpty == true { contents = nil }
        if let contents {
            guard contents.count == name.length, Digest(of: contents.span) == name.digest else {
                throw .wrongDigest
            }
        }
        if name.length == 0, name.digest != Digest(ofKey: "") { throw .wrongDigest }
        self.init(
            path: path,
            digest: name.digest,
            length: name.length,
            contents: contents,
            isExecutable: isExecutable
        )
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
