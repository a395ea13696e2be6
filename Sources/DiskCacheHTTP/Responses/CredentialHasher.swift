// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// Computes keyed digests that distinguish credentials without storing them; each directory has a separate key.
struct CredentialHasher: Sendable {
    /// The cache key of the entry that stores the secret key.
    static let name = "http seal"

    private let key: Data

    init(key: Data) {
        self.key = key
    }

    /// Returns a random key that can't be guessed.
    static func makeKey() -> Data {
        var generator = SystemRandomNumberGenerator()
        return Data((0..<32).map { _ in UInt8.random(in: 0 ... .max, using: &generator) })
    }

    func callAsFunction(_ secret: String) -> String {
        Data(HMAC.sha256(key: Array(key), Array(secret.utf8))).base64EncodedString()
    }
}
