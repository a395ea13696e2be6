// SPDX-License-Identifier: Apache-2.0

import Platform
import Transport

/// A connection to Redis, used by one thread at a time.
final class RedisConnection: @unchecked Sendable {
    private let socket: StreamSocket
    private let name: String
    private var decoder: RedisDecoder

    /// Connects, and sends the initial commands, which log in and select a database.
    ///
    /// - Parameter name: The name of the server, for messages.
    init(
        to place: SocketPlace,
        _ name: String,
        _ limits: RedisDecoder.Limits,
        greeting: [[UInt8]],
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) {
        do throws(TransportError) {
            socket = try StreamSocket(to: place, until: deadline)
        } catch {
            throw RemoteFailure(.init(error), "\(name): \(error)")
        }
        self.name = name
        decoder = RedisDecoder(limits)
        for command in greeting {
            let reply = try ask(command, until: deadline)
            guard let code = reply.errorCode else { continue }
            let failure = RemoteFailure(redisError: code, of: name)
            // An error here is about the connection, not about the request that follows, which may succeed later.
            throw RemoteFailure(failure.kind == .failed ? .failed : .denied, failure.message)
        }
    }

    /// Whether the connection can be used again: no unrequested bytes have arrived.
    var isIdle: Bool { decoder.waitingBytes == 0 && socket.isIdle }

    /// Sends a command, and waits for its reply.
    ///
    /// After a failure, the connection is unusable.
    func ask(
        _ command: [UInt8],
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> RedisReply {
        try passing { () throws(Errno) in try socket.write(command, until: deadline) }
        return try reply(until: deadline)
    }

    /// Sends commands at once, and waits for their replies.
    func ask(
        _ commands: [[UInt8]],
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> [RedisReply] {
        try passing { () throws(Errno) in try socket.write(commands.flatMap(\.self), until: deadline) }
        var replies: [RedisReply] = []
        while replies.count < commands.count { replies.append(try reply(until: deadline)) }
        return replies
    }

    private func reply(until deadline: ContinuousClock.Instant) throws(RemoteFailure) -> RedisReply {
        while true {
            if let reply = try nextReply() { return reply }
            let bytes = try passing { () throws(Errno) in try socket.read(upTo: 64 * 1024, until: deadline) }
            if bytes.isEmpty {
                throw RemoteFailure(.failed, "\(name): the connection was closed", isOutcomeUnknown: true)
            }
            decoder.append(bytes)
        }
    }

    private func nextReply() throws(RemoteFailure) -> RedisReply? {
        do throws(WireFault) {
            return try decoder.next()
        } catch {
            throw RemoteFailure(
                error == .longValue ? .tooLong : .failed,
                "\(name): its answer is \(error.rawValue)",
                isOutcomeUnknown: true
            )
        }
    }

    private func passing<Value>(_ body: () throws(Errno) -> Value) throws(RemoteFailure) -> Value {
        do throws(Errno) {
            return try body()
        } catch {
            throw Self.failure(error, name)
        }
    }

    private static func failure(_ error: Errno, _ name: String) -> RemoteFailure {
        RemoteFailure(error == .timedOut ? .slow : .failed, "\(name): \(error)", isOutcomeUnknown: true)
    }
}
