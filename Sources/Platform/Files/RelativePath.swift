// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A short path below a directory, such as `ab/0f…`, stored inline so that building one allocates no memory.
package struct RelativePath: Sendable {
    /// The maximum length in bytes without the final NUL: "lock-", 64 hexadecimal digits and a number need 73.
    package static let capacity = 95

    private var bytes = InlineArray<96, UInt8>(repeating: 0)
    private var count = 0

    /// Creates the empty path, to append to.
    package init() {}

    /// Copies `text`.
    ///
    /// - Precondition: `text` has at most ``capacity`` bytes, without NUL.
    package init(_ text: String) {
        for byte in text.utf8 { append(byte) }
    }

    /// Appends one byte.
    package mutating func append(_ byte: UInt8) {
        precondition(count < Self.capacity && byte != 0, "a path inside the cache outgrew its room")
        bytes[count] = byte
        count += 1
    }

    /// Appends the lowercase hexadecimal digits of the first `length` of `digest`'s 32 bytes, in memory order.
    ///
    /// Every call on a file of the cache builds such a name, so the digits are appended in one pass, without a check for
    /// each.
    ///
    /// - Precondition: The digits fit, and `length` is at most 32.
    package mutating func append(hexadecimal digest: InlineArray<4, UInt64>, first length: Int = 32) {
        precondition(length <= 32 && count + 2 * length <= Self.capacity, "a path outgrew its room")
        var span = bytes.mutableSpan
        unsafe span.withUnsafeMutableBytes { path in
            unsafe digest.span.withUnsafeBytes { digest in
                for index in 0..<length {
                    let byte = unsafe digest[index]
                    unsafe path[count &+ 2 &* index] = Self.digit(byte &>> 4)
                    unsafe path[count &+ 2 &* index &+ 1] = Self.digit(byte & 15)
                }
            }
        }
        count += 2 * length
    }

    /// Returns a hexadecimal digit without a branch: the gap between "9" and "a" is added to values of 10 and more.
    private static func digit(_ value: UInt8) -> UInt8 {
        UInt8(ascii: "0") &+ value &+ ((9 &- value) &>> 7) &* (UInt8(ascii: "a") &- UInt8(ascii: "9") &- 1)
    }

    /// The first directory of the path and the rest below it; nil for a single name.
    var firstDirectory: (name: RelativePath, rest: RelativePath)? {
        for index in 0..<count where bytes[index] == UInt8(ascii: "/") {
            var (name, rest) = (RelativePath(), RelativePath())
            for index in 0..<index { name.append(bytes[index]) }
            for index in (index + 1)..<count { rest.append(bytes[index]) }
            return (name, rest)
        }
        return nil
    }

    /// The path as the functions of CPlatform take it: the same bytes.
    var cPath: cplatform_path { unsafe unsafeBitCast(bytes, to: cplatform_path.self) }
}

extension RelativePath: ExpressibleByStringLiteral, CustomStringConvertible {
    package init(stringLiteral value: StaticString) {
        self.init("\(value)")
    }

    package var description: String {
        String(decoding: (0..<count).map { bytes[$0] }, as: UTF8.self)
    }
}
