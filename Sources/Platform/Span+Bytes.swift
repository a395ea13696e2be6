// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import Glibc

// `Span.bytes` counts as unsafe because elements may have padding; bytes have none. These overloads keep
// the keyword out of the layers above.

extension SHA256 {
    /// Adds `bytes` to what is hashed.
    package mutating func update(_ bytes: Span<UInt8>) {
        unsafe update(bytes.bytes)
    }

    /// The SHA-256 of `bytes`.
    package static func hash(_ bytes: Span<UInt8>) -> InlineArray<32, UInt8> {
        unsafe hash(bytes.bytes)
    }
}

extension Data {
    /// A copy of `bytes`.
    ///
    /// - Throws: ``Errno/outOfMemory`` where there is no memory for a megabyte or more; where there is none for less,
    ///   hardly anything works.
    package init(copying bytes: Span<UInt8>) throws(Errno) {
        let count = bytes.count
        guard count >= 1 << 20 else {
            self = unsafe bytes.withUnsafeBufferPointer { unsafe Data($0) }
            return
        }
        guard let memory = unsafe malloc(count) else { throw .outOfMemory }
        unsafe bytes.withUnsafeBytes { (bytes) -> Void in
            if let base = bytes.baseAddress { unsafe memory.copyMemory(from: base, byteCount: count) }
        }
        self = unsafe Data(bytesNoCopy: memory, count: count, deallocator: .free)
    }
}

extension CRC32C {
    /// Adds `bytes` to what is summed.
    package mutating func update(_ bytes: Span<UInt8>) {
        unsafe update(bytes.bytes)
    }

    /// The CRC-32C of `bytes`.
    package static func checksum(_ bytes: Span<UInt8>) -> UInt32 {
        unsafe checksum(bytes.bytes)
    }
}
