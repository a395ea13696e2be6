// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The SHA-256 digest of bytes that arrive in any number of pieces, as FIPS 180-4 defines it.
///
/// The digest depends on the bytes alone, not on how they were cut or on the CPU. A copy goes its own way
/// from where it was made. Nothing is allocated and nothing fails. The standard's limit of 2^61 - 1 bytes is
/// not checked.
package struct SHA256: Sendable {
    /// Whether this CPU has instructions for it, which are used then.
    package static var isAccelerated: Bool { cplatform_sha256_is_accelerated() }

    private var message = cplatform_sha256()
    private let isPortable: Bool

    /// Starts with an empty message.
    ///
    /// - Parameter isPortable: whether to do without the CPU's own instructions: for tests.
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
    /// - Complexity: O(1); one block, or two, is left to compress.
    package consuming func finalize() -> [32 of UInt8] {
        unsafe Self.digest { unsafe cplatform_sha256_end(&message, $0, isPortable) }
    }

    /// Returns the digest of bytes that are all there.
    ///
    /// - Complexity: O(*n*) in the number of bytes; of a key, up to 55 bytes, 60 ns.
    package static func hash(_ bytes: Span<UInt8>, isPortable: Bool = false) -> [32 of UInt8] {
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe digest {
                unsafe cplatform_sha256_hash($0, bytes.baseAddress, bytes.count, isPortable)
            }
        }
    }

    /// What `body` writes to the 32 bytes that it is given.
    @unsafe
    private static func digest(_ body: (UnsafeMutablePointer<UInt8>) -> Void) -> [32 of UInt8] {
        var digest = [32 of UInt8](repeating: 0)
        var span = digest.mutableSpan
        unsafe span.withUnsafeMutableBufferPointer { if let start = $0.baseAddress { unsafe body(start) } }
        return digest
    }
}
