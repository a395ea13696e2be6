// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The CRC-32C (Castagnoli) of bytes that arrive in any number of pieces; RFC 3720 section 12.1.
///
/// It finds accidents, such as a torn write or a flipped bit, and no attack. The value depends on the bytes
/// alone, not on how they were cut or on the CPU. Nothing is allocated and nothing fails.
package struct CRC32C: Sendable, Equatable {
    /// Whether `HashKernel.automatic` means CRC-32C instructions on this CPU.
    package static var isAccelerated: Bool { cplatform_crc32c_is_accelerated() }

    /// The checksum of everything appended so far; 0 for no bytes.
    package private(set) var value: UInt32 = 0

    private let kernel: HashKernel

    /// Starts with no bytes.
    ///
    /// Only tests choose a kernel.
    package init(kernel: HashKernel = .automatic) {
        self.kernel = kernel
    }

    /// Appends bytes.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package mutating func update(_ bytes: borrowing RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe update($0) }
    }

    /// Appends bytes.
    ///
    /// They are read during the call only.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    @unsafe package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        value = unsafe cplatform_crc32c_update(value, start, bytes.count, kernel.inC)
    }

    /// Returns the checksum of bytes that are all there.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package static func checksum(_ bytes: borrowing RawSpan) -> UInt32 {
        var checksum = CRC32C()
        checksum.update(bytes)
        return checksum.value
    }

    /// Compares the values; the kernel that computed them does not count.
    package static func == (first: CRC32C, second: CRC32C) -> Bool {
        first.value == second.value
    }
}
