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

    func putIfNewer(
        _ key: Digest,
        _ parcel: RemoteEntry,
        onlyReplacing: Bool,
        upTo latest: ChangeVersion,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> ChangeVersion? {
        let name = bytes(of: key)
        let lifetime = parcel.lifetime.map { max(1, $0.saturatingNanoseconds / 1_000_000) }
        let version = parcel.version(of: key)
        let set = RedisCommand.set(name, Envelope.seal(parcel), lifetime: lifetime)
        return try withConnection(until: deadline) { (connection) throws(RemoteFailure) -> ChangeVersion? in
            for _ in 0..<Self.attempts {
                let present = try watch(key, name, connection, deadline)
                let isLater = try present.map { (present) throws(RemoteFailure) in
                    let isUnusable = try present.isUnusable(after: max(version, latest)) {
                        () throws(RemoteFailure) in
                        Self.time(in: try connection.ask(RedisCommand.time, until: deadline))
                    }
                    return present >= version && !isUnusable
                }
                if isLater ?? onlyReplacing {
                    _ = try connection.ask(RedisCommand.unwatch, until: deadline)
                    return present ?? ChangeVersion.none
                }
                let replies = try connection.ask(
                    [RedisCommand.multi, set, RedisCommand.exec],
                    until: deadline
                )
                // An error of the command in the transaction is more precise than that of the transaction.
                if let refused = replies.first(where: { $0.errorCode != nil }) { throw unexpected(refused) }
                switch replies.last {
                case .null?: continue
                case .array(let results)?:
                    guard case .simple? = results.first else { throw unexpected(results.first ?? .null) }
                    return nil
                default: throw unexpected(replies.last ?? .null)
                }
            }
            throw RemoteFailure(.failed, "\(self.name): other clients change the entry again and again")
        }
    }

    /// How often a change is compared with the present entry, if other clients change that meanwhile.
    private static let attempts = 10

    /// Returns the time in the answer to `TIME`; nil if the user may not ask for it.
    private static func time(in reply: RedisReply) -> Timestamp? {
        guard case .array(let parts) = reply, case .bulk(let digits)? = parts.first,
            let seconds = Int64(String(decoding: digits, as: UTF8.self))
        else { return nil }
        return Timestamp(milliseconds: seconds.multipliedReportingOverflow(by: 1000).partialValue)
    }

    /// Watches a key; returns the version of its entry, or nil if there is none.
    private func watch(
        _ key: Digest,
        _ name: [UInt8],
        _ connection: RedisConnection,
        _ deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> ChangeVersion? {
        let usual = RedisCommand.get(name, first: Envelope.usualBeginning)
        let replies = try connection.ask([RedisCommand.watch(name), usual], until: deadline)
        if let refused = replies.first(where: { $0.errorCode != nil }) { throw unexpected(refused) }
        var reply = replies.last ?? .null
        if case .bulk(let bytes) = reply, let found = Envelope.record(in: bytes.span),
            found.needed > bytes.count
        {
            reply = try connection.ask(RedisCommand.get(name, first: found.needed), until: deadline)
        }
        guard case .bulk(let bytes) = reply else { throw unexpected(reply) }
        if bytes.isEmpty { return nil }
        let record = Envelope.record(in: bytes.span).flatMap { Record(decoding: $0.bytes, for: key) }
        // Whatever else is there is replaced.
        return record?.version ?? ChangeVersion.none
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
        try withConnection(until: deadline) { (connection) throws(RemoteFailure) in
            try connection.ask(command, until: deadline)
        }
    }

    /// Runs `body` with an idle connection, and again with a new one if that is closed.
    private func withConnection<Value>(
        until deadline: ContinuousClock.Instant,
        _ body: (RedisConnection) throws(RemoteFailure) -> Value
    ) throws(RemoteFailure) -> Value {
        // Redis may close an idle connection at any time, so that failure does not count; a new connection is tried.
        var isOutcomeUnknown = false
        if let known = takeIdle() {
            do throws(RemoteFailure) {
                return try use(known, body)
            } catch {
                if error.kind != .failed { throw error }
                isOutcomeUnknown = error.isOutcomeUnknown
            }
        }
        do throws(RemoteFailure) {
            let fresh = try RedisConnection(to: place, name, limits, greeting: greeting, until: deadline)
            return try use(fresh, body)
        } catch {
            throw RemoteFailure(
                error.kind,
                error.message,
                isOutcomeUnknown: isOutcomeUnknown || error.isOutcomeUnknown
            )
        }
    }

    /// Runs `body`, and keeps the connection for later requests unless it fails.
    private func use<Value>(
        _ connection: RedisConnection,
        _ body: (RedisConnection) throws(RemoteFailure) -> Value
    ) throws(RemoteFailure) -> Value {
        let value = try body(connection)
        idle.withLock { if $0.count < Self.mostIdle { $0.append(connection) } }
        return value
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
            // The memory is full, or the disk to which Redis saves, or too few replicas are there; reads still work.
            case "OOM", "MISCONF", "NOREPLICAS": .full
            // The password is being changed, or the server is a read-only replica.
            case "NOAUTH", "WRONGPASS", "NOPERM", "READONLY": .denied
            // The server is starting, or runs a script: a later request may succeed.
            case "LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN": .failed
            default: .refused
            }
        self.init(kind, "\(name): \(code)")
    }
}
