// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The CRC-32C (Castagnoli) of bytes that arrive in any number of pieces; RFC 3720 section 12.1.
///
/// The checksum detects accidents, such as a torn write or a flipped bit, but no attacks. It depends only on the bytes,
/// not on their division into pieces or on the CPU. Computing it allocates no memory and can't fail.
package struct CRC32C: Sendable {
    /// Whether this CPU has CRC-32C instructions, which are used by default.
    package static var isAccelerated: Bool { cplatform_crc32c_is_accelerated() }

    /// The checksum of everything appended so far; 0 for no bytes.
    package private(set) var value: UInt32 = 0

    private let isPortable: Bool

    /// Creates the checksum of no bytes.
    ///
    /// - Parameter isPortable: Whether to avoid the CPU's instructions, for tests.
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
        // The compiler considers `bytes` unsafe because elements may have padding; `UInt8` has none.
        unsafe update(bytes.bytes)
    }

    /// Returns the checksum of the given bytes.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package static func checksum(_ bytes: Span<UInt8>) -> UInt32 {
        var checksum = CRC32C()
        checksum.update(bytes)
        return checksum.value
    }
}
