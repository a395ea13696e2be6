// SPDX-License-Identifier: Apache-2.0

/// An error in the remote configuration.
package struct ConfigurationFault: Error {
    /// The invalid key of config.json.
    package let key: String
    package let words: String

    package init(key: String, words: String) {
        (self.key, self.words) = (key, words)
    }

    /// The error that users of the library receive.
    package var error: CacheError {
        let reason = "share values between machines: remote.\(key): \(words)"
        return CacheError(.badConfiguration, "\(reason): correct the configuration")
    }
}
