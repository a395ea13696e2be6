// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The CRC-32C (Castagnoli) of bytes that arrive in any number of pieces; RFC 3720 section 12.1.
///
/// It finds accidents, such as a torn write or a flipped bit, and no attack. The value depends on the bytes
/// alone, not on how they were cut or on the CPU. Nothing is allocated and nothing fails.
package struct CRC32C: Sendable {
    /// Whether this CPU has instructions for it, which are used then.
    package static var isAccelerated: Bool { cplatform_crc32c_is_accelerated() }

    /// The checksum of everything appended so far; 0 for no bytes.
    package private(set) var value: UInt32 = 0

    private let isPortable: Bool

    /// Starts with no bytes.
    ///
    /// - Parameter isPortable: whether to do without the CPU's own instructions: for tests.
    package init(isPortable: Bool = false) {
        self.isPortable = isPortable
    }

    /// Appends bytes.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package mutating func update(_ bytes: borrowing RawSpan) {
        unsafe bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress {
                value = unsafe cplatform_crc32c_update(value, start, bytes.count, isPortable)
            }
        }
    }

    /// Appends bytes.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package mutating func update(_ bytes: Span<UInt8>) {
        // Counts as unsafe because elements may have padding; bytes have none.
        unsafe update(bytes.bytes)
    }

    /// Returns the checksum of bytes that are all there.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package static func checksum(_ bytes: Span<UInt8>) -> UInt32 {
        var checksum = CRC32C()
        checksum.update(bytes)
        return checksum.value
    }
}
