// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// Tells credentials apart without keeping them: a keyed digest, whose key each directory has for itself.
struct Seal: Sendable {
    /// Where the key is.
    static let name = "http seal"

    private let key: Data

    init(key: Data) {
        self.key = key
    }

    /// A key that nobody can guess.
    static func makeKey() -> Data {
        var generator = SystemRandomNumberGenerator()
        return Data((0..<32).map { _ in UInt8.random(in: 0 ... .max, using: &generator) })
    }

    func callAsFunction(_ secret: String) -> String {
        Data(HMAC.sha256(key: Array(key), Array(secret.utf8))).base64EncodedString()
    }
}
