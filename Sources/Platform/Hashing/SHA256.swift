// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The SHA-256 digest of bytes that arrive in any number of pieces, as defined by FIPS 180-4.
///
/// The digest depends only on the bytes, not on their division into pieces or on the CPU. A copy is independent of the
/// original. Computing the digest allocates no memory and can't fail. The standard's limit of 2^61 - 1 bytes is not
/// checked.
package struct SHA256: Sendable {
    /// Whether this CPU has SHA-256 instructions, which are used by default.
    package static var isAccelerated: Bool { cplatform_sha256_is_accelerated() }

    private var message = cplatform_sha256()
    private let isPortable: Bool

    /// Creates the digest of an empty message.
    ///
    /// - Parameter isPortable: Whether to avoid the CPU's instructions, for tests.
    package init(isPortable: Bool = false) {
        self.isPortable = isPortable
        unsafe cplatform_sha256_begin(&message)
    }

    /// Appends bytes to the message.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package mutating func update(_ bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe cplatform_sha256_update(&message, bytes.baseAddress, bytes.count, isPortable)
        }
    }

    /// Returns the digest of everything appended: H0...H7 as big-endian bytes.
    ///
    /// - Complexity: O(1); one or two blocks are left to compress.
    package consuming func finalize() -> [32 of UInt8] {
        unsafe Self.digest { unsafe cplatform_sha256_end(&message, $0, isPortable) }
    }

    /// Returns the digest of the given bytes.
    ///
    /// - Complexity: O(*n*) in the number of bytes; 60 ns for a key of up to 55 bytes.
    package static func hash(_ bytes: Span<UInt8>, isPortable: Bool = false) -> [32 of UInt8] {
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe digest {
                unsafe cplatform_sha256_hash($0, bytes.baseAddress, bytes.count, isPortable)
            }
        }
    }

    /// Returns the 32 bytes that `body` writes.
    @unsafe
    private static func digest(_ body: (UnsafeMutablePointer<UInt8>) -> Void) -> [32 of UInt8] {
        var digest = [32 of UInt8](repeating: 0)
        var span = digest.mutableSpan
        unsafe span.withUnsafeMutableBufferPointer { if let start = $0.baseAddress { unsafe body(start) } }
        return digest
    }
}
