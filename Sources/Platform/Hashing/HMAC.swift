// SPDX-License-Identifier: Apache-2.0

/// HMAC with SHA-256, RFC 2104.
package enum HMAC {
    /// Returns the 32 bytes of the HMAC of `message`.
    package static func sha256(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        var block = key.count > 64 ? hash(key) : key
        block += repeatElement(0, count: 64 - block.count)
        let inner = hash(block.map { $0 ^ 0x36 } + message)
        return hash(block.map { $0 ^ 0x5c } + inner)
    }

    private static func hash(_ bytes: [UInt8]) -> [UInt8] {
        let digest = SHA256.hash(bytes.span)
        return (0..<32).map { digest[$0] }
    }
}
