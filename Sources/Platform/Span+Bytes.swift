// SPDX-License-Identifier: Apache-2.0

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
