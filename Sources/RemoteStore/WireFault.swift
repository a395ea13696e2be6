// SPDX-License-Identifier: Apache-2.0

/// Why bytes from a server, or from a file that others may write, are invalid.
///
/// The caller treats each of them as a miss.
package enum WireFault: String, Error, Sendable {
    /// They can't be decoded.
    case malformed
    /// They exceed the limits of length, depth or number.
    case tooLong
    /// They do not match their digest.
    case wrongDigest
}
