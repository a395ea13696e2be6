// SPDX-License-Identifier: Apache-2.0

/// Why bytes from a server, or from a file that other users may write, are invalid.
///
/// Callers treat each fault as a miss.
enum WireFault: String, Error, Sendable {
    /// The bytes can't be decoded.
    case malformed
    /// The bytes exceed a limit of length, depth or number.
    case tooLong
    /// A value is longer than this machine accepts; it may be sound.
    case longValue
    /// The bytes do not match their digest.
    case wrongDigest
}
