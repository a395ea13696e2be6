// SPDX-License-Identifier: Apache-2.0

import Glibc

// Swift's own `==` and `hashValue` take strings for equal that differ only in how their accents are composed,
// and look for that. Keys are bytes.

extension String {
    /// Whether both have the same UTF-8 bytes.
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
}
