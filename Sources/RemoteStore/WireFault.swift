// SPDX-License-Identifier: Apache-2.0

/// Why bytes that came from a server, or from a file that others may write, are not what they should be.
///
/// For the caller each of them is a miss.
package enum WireFault: String, Error, Sendable {
    /// They make no sense.
    case malformed
    /// They are longer, deeper or more than the limits allow.
    case tooLong
    /// They are not those that their digest names.
    case wrongDigest
}
