// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Transport

/// A value and its record, as a server stores them under a key; or the record of a removal, without a value.
struct RemoteEntry: Sendable, Equatable {
    /// The record for the key, as ``Record/encoded(for:)`` returns it.
    var record: [UInt8]
    var bytes: Data
    /// The digest of the bytes.
    var digest: Digest
    /// The time after which the server may delete the entry; nil for no limit.
    var lifetime: Duration?
}

extension RemoteEntry {
    /// How long a server keeps a removal; by then no request with an older value is under way anymore.
    private static let lifetimeOfRemovals: Duration = .seconds(30 * 86_400)

    /// Creates the entry of a removal.
    init(removalOf key: Digest, at version: ChangeVersion) {
        let content = Content(of: [UInt8]().span)
        var record = Record(content: content, created: version.moment)
        record.expires = record.created + Self.lifetimeOfRemovals
        record.details.isNothing = true
        record.version = version
        self.init(record: record.encoded(for: key), bytes: Data(), digest: content.digest)
        lifetime = Self.lifetimeOfRemovals
    }

    /// The version of the change that stored the entry; none if it is not an entry of the key.
    func version(of key: Digest) -> ChangeVersion {
        Record(decoding: record, for: key)?.version ?? .none
    }
}

/// Why a request to a server failed.
struct RemoteFailure: Error, Sendable, Equatable {
    enum Kind: Sendable {
        /// The breaker is open: no request was sent.
        case skipped
        /// This process could not send the request, for a reason that says nothing about the server.
        case unable
        /// The answer did not arrive in time.
        case slow
        /// The server could not be reached, or failed.
        case failed
        /// The server answered that it has no room for the value; it may have room later.
        case full
        /// The server denied the request or redirected it; it may accept it later, since credentials, addresses and
        /// proxies may change.
        case denied
        /// The server answered that it refuses the request permanently.
        case refused
        /// The server's answer is invalid, or does not match its digest.
        case wrong
        /// The server's answer is longer than this machine accepts; it may be sound.
        case tooLong
    }

    let kind: Kind
    /// A message without secrets.
    let message: String
    /// Whether the request was sent but its outcome is unknown, so that the server may still carry it out.
    let isOutcomeUnknown: Bool

    init(_ kind: Kind, _ message: String, isOutcomeUnknown: Bool = false) {
        self.kind = kind
        self.message = message
        self.isOutcomeUnknown = isOutcomeUnknown
    }
}

extension RemoteFailure.Kind {
    init(_ error: TransportError) {
        self =
            switch error.code {
            case .timedOut: .slow
            case .tooLarge: .tooLong
            case .headTooLarge: .wrong
            case .libraryMissing, .noResources, .invalidRequest, .unsupportedScheme, .cancelled: .unable
            default: .failed
            }
    }
}

/// The client of a server, for one protocol.
///
/// Calls block their thread, at most until the deadline.
///
/// To add a protocol, write a type that conforms to this one, and add a line to `RemoteServer.client`.
protocol RemoteClient: Sendable {
    /// Returns the unverified entry of a key, or nil if it is missing.
    func get(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) -> RemoteEntry?
    /// Stores an entry, unless the server has one of the same or a later version.
    ///
    /// A server that can't compare may store the entry although another client has stored a later one in the meantime.
    ///
    /// - Parameters:
    ///   - onlyReplacing: Whether to store nothing if the server has no entry of the key.
    ///   - latest: The latest version that this machine takes. A later one on the server is replaced if it is also far ahead
    ///     of the server's clock: otherwise no machine could use the key there anymore.
    /// - Returns: nil if the entry was stored; otherwise the version of the server's entry, or ``ChangeVersion/none`` if
    ///   it has none.
    func putIfNewer(
        _ key: Digest,
        _ parcel: RemoteEntry,
        onlyReplacing: Bool,
        upTo latest: ChangeVersion,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> ChangeVersion?
    /// Deletes a damaged entry, but not its content, to which other entries may refer.
    func remove(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure)
}

extension ChangeVersion {
    /// Returns whether no machine takes this version from a server, because it is far ahead of this machine's clock, and
    /// of the server's: this machine's may be wrong.
    ///
    /// - Parameters:
    ///   - latest: The latest version that this machine takes.
    ///   - time: Returns the time on the server; nil if it does not tell.
    func isUnusable<Failure>(
        after latest: ChangeVersion,
        time: () throws(Failure) -> Timestamp?
    ) throws(Failure) -> Bool {
        guard self > latest, let time = try time() else { return false }
        return self > ChangeVersion(at: time + Self.furthestAhead, machine: .max)
    }
}

/// A record and its value in one sequence of bytes, for servers that store one string for each key.
///
/// ```
/// 0   4  "dcr1"
/// 4   4  bytes of the record, little-endian
/// 8   …  the record, then the value
/// ```
enum Envelope {
    private static let signature = Array("dcr1".utf8)

    static func seal(_ parcel: RemoteEntry) -> [UInt8] {
        var bytes = signature
        bytes.reserveCapacity(8 + parcel.record.count + parcel.bytes.count)
        let count = UInt32(parcel.record.count)
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: count >> shift))
        }
        return bytes + parcel.record + parcel.bytes
    }

    /// The length of the beginning of an envelope that contains most records whole.
    static let usualBeginning = 1024
    /// The length of the beginning that contains each record whole.
    static let longestBeginning = 8 + Record.maximumSize

    /// Returns the record of an envelope, or how many of its first bytes contain the record; nil if it is not an envelope.
    static func record(in beginning: Span<UInt8>) -> (bytes: [UInt8], needed: Int)? {
        guard beginning.count >= 8, (0..<4).allSatisfy({ beginning[$0] == signature[$0] }) else { return nil }
        var count = 0
        for index in (4..<8).reversed() { count = count << 8 | Int(beginning[index]) }
        guard count <= Record.maximumSize else { return nil }
        let end = 8 + count
        guard end <= beginning.count else { return ([], end) }
        return ((8..<end).map { beginning[$0] }, end)
    }

    /// Returns nil if ``seal(_:)`` did not create these bytes for this key, as far as checksums can tell.
    ///
    /// The digest in the result comes from the record, and is not yet checked against the bytes.
    static func open(_ bytes: Data, for key: Digest) -> RemoteEntry? {
        let start = bytes.startIndex
        guard bytes.count >= 8, bytes.prefix(4).elementsEqual(signature) else { return nil }
        var count = 0
        for index in (4..<8).reversed() { count = count << 8 | Int(bytes[start + index]) }
        guard count <= bytes.count - 8 else { return nil }
        let record = [UInt8](bytes[start + 8..<start + 8 + count])
        guard let content = Record(decoding: record, for: key)?.content else { return nil }
        let value = Data(bytes[(start + 8 + count)...])
        // Rejects damaged bytes. A record of another key fails its own checksum.
        guard content.length == value.count, content.checksum == CRC32C.checksum(value.span) else {
            return nil
        }
        return RemoteEntry(record: record, bytes: value, digest: content.digest)
    }
}
