// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import FoundationEssentials
import Platform

/// A value with its record, as servers store it under a key.
package struct RemoteParcel: Sendable, Equatable {
    /// As ``RecordCodec`` writes it, for the key.
    package var record: [UInt8]
    package var bytes: Data
    /// Of the bytes.
    package var digest: Digest
    /// The time after which the server may delete it; nil: never.
    package var lifetime: Duration?

    package init(record: [UInt8], bytes: Data, digest: Digest, lifetime: Duration? = nil) {
        self.record = record
        self.bytes = bytes
        self.digest = digest
        self.lifetime = lifetime
    }
}

/// Why a request to a server failed.
package struct RemoteFailure: Error, Sendable, Equatable {
    package enum Kind: Sendable {
        /// Its breaker is open: it was not asked.
        case skipped
        /// The answer did not come in time.
        case slow
        /// It could not be reached, or failed.
        case failed
        /// It answers, and has no room for the value. It may have room later.
        case full
        /// It does not allow the request, or redirects it. Credentials, addresses and proxies may change, so it may work later.
        case denied
        /// It answers, and refuses the request for good.
        case refused
        /// Its answer is invalid, or does not match its digest.
        case wrong
    }

    package let kind: Kind
    /// Without anything secret.
    package let message: String
    /// Whether the request was sent and its outcome is unknown: the server may still carry it out later.
    package let isOutcomeUnknown: Bool

    package init(_ kind: Kind, _ message: String, isOutcomeUnknown: Bool = false) {
        self.kind = kind
        self.message = message
        self.isOutcomeUnknown = isOutcomeUnknown
    }
}

/// A server, whatever its protocol.
///
/// Its calls block their thread until the deadline at most.
///
/// A kind of store is one type that conforms to this, and a line where the tier makes them
/// (`RemoteServer.client`).
package protocol RemoteClient: AnyObject, Sendable {
    /// The entry of a key, unchecked; nil if there is none.
    func get(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) -> RemoteParcel?
    /// - Parameter ifMissing: whether an entry that is there stays. A server that does not know such requests replaces it.
    func put(
        _ key: Digest,
        _ parcel: RemoteParcel,
        ifMissing: Bool,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure)
    /// Removes the entry, and no content: other entries may name that too, and an entry may name any.
    func remove(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure)
}

extension RemoteClient {
    /// Puts the entry in the place of any that is there.
    func put(
        _ key: Digest,
        _ parcel: RemoteParcel,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) {
        try put(key, parcel, ifMissing: false, until: deadline)
    }
}

/// Record and value in one row of bytes, for stores that have one for each key.
///
/// ```
/// 0   4  "dcr1"
/// 4   4  bytes of the record, little-endian
/// 8   …  the record, then the value
/// ```
enum Envelope {
    private static let signature = Array("dcr1".utf8)

    static func seal(_ parcel: RemoteParcel) -> [UInt8] {
        var bytes = signature
        bytes.reserveCapacity(8 + parcel.record.count + parcel.bytes.count)
        let count = UInt32(parcel.record.count)
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: count >> shift))
        }
        return bytes + parcel.record + parcel.bytes
    }

    /// nil for what ``seal(_:)`` did not make of this key and these bytes, as far as a checksum tells.
    ///
    /// The digest is not that of the bytes yet, but the one that the record names.
    static func open(_ bytes: Data, for key: Digest) -> RemoteParcel? {
        let start = bytes.startIndex
        guard bytes.count >= 8, bytes.prefix(4).elementsEqual(signature) else { return nil }
        var count = 0
        for index in (4..<8).reversed() { count = count << 8 | Int(bytes[start + index]) }
        guard count <= bytes.count - 8 else { return nil }
        let record = [UInt8](bytes[start + 8..<start + 8 + count])
        guard let content = RecordCodec.decode(record, for: key)?.content else { return nil }
        let value = Data(bytes[(start + 8 + count)...])
        // Under another key, or from damaged bytes, a record gives another checksum.
        guard content.length == value.count, content.checksum == CRC32C.checksum(value.span) else {
            return nil
        }
        return RemoteParcel(record: record, bytes: value, digest: content.digest)
    }
}
