// SPDX-License-Identifier: Apache-2.0

import Glibc

// Keys are compared as bytes. Swift's `==` and `hashValue` treat strings as equal that differ only in Unicode
// normalization, and spend time on that.

extension String {
    /// Whether both strings have the same UTF-8 bytes.
    package func hasSameBytes(as other: String) -> Bool {
        let (left, right) = (utf8Span.span, other.utf8Span.span)
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                guard let left = left.baseAddress, let right = right.baseAddress else { return true }
                return unsafe memcmp(left, right, other.utf8.count) == 0
            }
        }
    }

    /// Creates text from UTF-8 bytes; invalid bytes are replaced by U+FFFD.
    package init(decoding bytes: Span<UInt8>) {
        self = unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

extension [UInt8] {
    /// Copies the bytes of a C string.
    @unsafe
    init(cString string: UnsafePointer<CChar>) {
        self = unsafe Array(UnsafeRawBufferPointer(start: string, count: strlen(string)))
    }
}
