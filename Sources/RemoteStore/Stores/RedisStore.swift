// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform
import Transport

/// A Redis server, which stores one string for each key; the string expires with the value.
final class RedisStore: RemoteClient {
    /// The maximum number of idle connections.
    private static let mostIdle = 32

    private let place: SocketPlace
    private let name: String
    /// The prefix of each key, before the digest.
    private let prefix: [UInt8]
    private let greeting: [[UInt8]]
    private let limits: RedisDecoder.Limits
    private let idle = Locked<[RedisConnection]>([])

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - namespace: The namespace in each key; may be empty.
    ///   - longest: The maximum length of a value in bytes.
    init(
        _ address: RemoteAddress,
        namespace: String,
        as entry: RemoteCredentials.Entry?,
        _ security: TransportSecurity,
        longest: Int64
    ) {
        place = address.place(security)
        name = address.name
        prefix = Array("diskcache:\(namespace.isEmpty ? "" : namespace + ":")".utf8)
        var greeting: [[UInt8]] = []
        if let entry {
            let user = entry.user.isEmpty ? nil : entry.user
            greeting.append(RedisCommand.authenticate(user: user, password: entry.secret))
        }
        if let database = Int(address.path), database != 0 {
            greeting.append(RedisCommand.select(database: database))
        }
        self.greeting = greeting
        var limits = RedisDecoder.Limits()
        limits.longestBulk = Int(clamping: longest) + 128 * 1024
        self.limits = limits
    }

    func get(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) -> RemoteEntry? {
        switch try ask(RedisCommand.get(bytes(of: key)), until: deadline) {
        case .bulk(let bytes):
            guard let parcel = Envelope.open(Data(bytes), for: key) else {
                throw RemoteFailure(.wrong, "\(name) returned data that is not an entry")
            }
            return parcel
        case .null: return nil
        case let other: throw unexpected(other)
        }
    }

    func put(
        _ key: Digest,
        _ parcel: RemoteEntry,
        ifMissing: Bool,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) {
        let lifetime = parcel.lifetime.map { max(1, $0.saturatingNanoseconds / 1_000_000) }
        let command = RedisCommand.set(
            bytes(of: key),
            Envelope.seal(parcel),
            lifetime: lifetime,
            ifMissing: ifMissing
        )
        switch try ask(command, until: deadline) {
        case .simple: return
        case .null where ifMissing: return
        case let other: throw unexpected(other)
        }
    }

    func remove(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) {
        let reply = try ask(RedisCommand.delete(bytes(of: key)), until: deadline)
        guard case .integer = reply else { throw unexpected(reply) }
    }

    private func bytes(of key: Digest) -> [UInt8] { prefix + key.description.utf8 }

    private func unexpected(_ reply: RedisReply) -> RemoteFailure {
        guard let code = reply.errorCode else {
            return RemoteFailure(.failed, "\(name): an unexpected answer")
        }
        return RemoteFailure(redisError: code, of: name)
    }

    // MARK: Connections

    private func ask(
        _ command: [UInt8],
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> RedisReply {
        // Redis may close an idle connection at any time, so that failure does not count; a new connection is tried.
        var isOutcomeUnknown = false
        if let known = takeIdle() {
            do throws(RemoteFailure) {
                return try ask(command, over: known, until: deadline)
            } catch {
                if error.kind != .failed { throw error }
                isOutcomeUnknown = error.isOutcomeUnknown
            }
        }
        do throws(RemoteFailure) {
            let fresh = try RedisConnection(to: place, name, limits, greeting: greeting, until: deadline)
            return try ask(command, over: fresh, until: deadline)
        } catch {
            throw RemoteFailure(
                error.kind,
                error.message,
                isOutcomeUnknown: isOutcomeUnknown || error.isOutcomeUnknown
            )
        }
    }

    private func ask(
        _ command: [UInt8],
        over connection: RedisConnection,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> RedisReply {
        let reply = try connection.ask(command, until: deadline)
        idle.withLock { if $0.count < Self.mostIdle { $0.append(connection) } }
        return reply
    }

    private func takeIdle() -> RedisConnection? {
        while let connection = idle.withLock({ $0.popLast() }) {
            if connection.isIdle { return connection }
        }
        return nil
    }
}

extension RemoteFailure {
    /// Creates the failure of a request to which Redis replied with an error.
    ///
    /// - Parameter code: The first word of the error.
    init(redisError code: String, of name: String) {
        let kind: Kind =
            switch code {
            // The memory is full, or the disk to which Redis saves; reads still work.
            case "OOM", "MISCONF": .full
            // The password is being changed, or the server is a read-only replica.
            case "NOAUTH", "WRONGPASS", "NOPERM", "READONLY": .denied
            // The server is starting, or runs a script: a later request may succeed.
            case "LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN": .failed
            default: .refused
            }
        self.init(kind, "\(name): \(code)")
    }
}
