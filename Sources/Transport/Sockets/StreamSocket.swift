// SPDX-License-Identifier: Apache-2.0

import CTransport
package import Platform

/// The address of a server that does not use HTTP.
package enum SocketPlace: Sendable, Hashable {
    /// A host and port; with TLS if `security` is set.
    case network(host: String, port: UInt16, security: TransportSecurity? = nil)
    /// The path of a unix socket.
    case path(String)
}

/// A connection to a server, with a deadline for each call.
///
/// It must be used only on threads that may block, and by one thread at a time.
@safe
package struct StreamSocket: ~Copyable {
    private let socket: OpaquePointer

    /// Connects to a server.
    ///
    /// Names are resolved on a separate thread, because resolving has no time limit. libcurl provides TLS, so that the
    /// same authorities are trusted as for HTTPS; it is opened when it is first needed.
    ///
    /// C: `getaddrinfo`, `socket`, `connect`, `poll`; curl_easy_perform(3) with CURLOPT_CONNECT_ONLY.
    package init(to place: SocketPlace, until deadline: ContinuousClock.Instant) throws(TransportError) {
        unsafe socket = try Self.open(place, until: deadline)
    }

    deinit {
        unsafe ctransport_socket_free(socket)
    }

    private static func open(
        _ place: SocketPlace,
        until deadline: ContinuousClock.Instant
    ) throws(TransportError) -> OpaquePointer {
        guard case .network(let host, let port, let security?) = place else {
            return unsafe try connect(to: place, until: deadline)
        }
        let library = try LibCurl.system.get()
        let socket = unsafe try connect(to: place, until: deadline)
        // A URL encloses an IPv6 address in brackets.
        let isNumber = host.contains(":")
        let limit = Int32(clamping: max(1, (deadline - .now).milliseconds))
        let code = unsafe ctransport_socket_secure(
            socket,
            library.functions,
            "https://\(isNumber ? "[\(host)]" : host):\(port)",
            isNumber ? nil : "\(host):\(port):127.0.0.1",
            security.authorityFile ?? ProxyEnvironment.own.authorityFile,
            security.certificateFile,
            security.keyFile,
            limit
        )
        if code == 0 { return unsafe socket }
        let words = unsafe String(cString: ctransport_socket_message(socket, code))
        unsafe ctransport_socket_free(socket)
        throw TransportError(curl: code, words, "TLS")
    }

    private static func connect(
        to place: SocketPlace,
        until deadline: ContinuousClock.Instant
    ) throws(TransportError) -> OpaquePointer {
        do throws(Errno) {
            let addresses = try addresses(of: place, until: deadline)
            return unsafe try connect(toOneOf: addresses, until: deadline)
        } catch {
            let code: TransportError.Code = error == .timedOut ? .timedOut : .connectionFailed
            throw TransportError(code, "\(error)", cause: error)
        }
    }

    /// Connects to the first address that accepts; an address that does not answer leaves time for the remaining ones.
    init(toOneOf addresses: [[UInt8]], until deadline: ContinuousClock.Instant) throws(Errno) {
        unsafe socket = try Self.connect(toOneOf: addresses, until: deadline)
    }

    private static func connect(
        toOneOf addresses: [[UInt8]],
        until deadline: ContinuousClock.Instant
    ) throws(Errno) -> OpaquePointer {
        var failure = Errno.noDeviceOrAddress.rawValue
        for (index, address) in addresses.enumerated() {
            let rest = try milliseconds(until: deadline)
            let limit = max(1, rest / Int32(addresses.count - index))
            let socket = unsafe ctransport_socket_connect(address, UInt32(address.count), limit, &failure)
            if let socket = unsafe socket { return unsafe socket }
        }
        throw Errno(rawValue: failure)
    }

    /// Reads at least one byte and at most `count`; returns an empty array if the server has closed the connection.
    package borrowing func read(
        upTo count: Int,
        until deadline: ContinuousClock.Instant
    ) throws(Errno) -> [UInt8] {
        let limit = try Self.milliseconds(until: deadline)
        var buffer = [UInt8](repeating: 0, count: count)
        let got = unsafe ctransport_socket_read(socket, &buffer, count, limit)
        if got < 0 { throw Errno(rawValue: Int32(-got)) }
        buffer.removeLast(count - Int(got))
        return buffer
    }

    /// Writes all bytes.
    package borrowing func write(
        _ bytes: [UInt8],
        until deadline: ContinuousClock.Instant
    ) throws(Errno) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let limit = try Self.milliseconds(until: deadline)
            let socket = unsafe self.socket
            let sent = unsafe rest.withUnsafeBytes { buffer -> Int64 in
                guard let start = buffer.baseAddress else { return 0 }
                return unsafe ctransport_socket_write(socket, start, buffer.count, limit)
            }
            if sent < 0 { throw Errno(rawValue: Int32(-sent)) }
            rest = rest.dropFirst(Int(sent))
        }
    }

    /// Whether another request can use the connection, as far as can be told without sending one.
    package var isIdle: Bool { unsafe ctransport_socket_is_idle(socket) }

    /// Returns the milliseconds left, at least 1.
    ///
    /// - Throws: `Errno.timedOut` if the deadline has passed.
    private static func milliseconds(until deadline: ContinuousClock.Instant) throws(Errno) -> Int32 {
        let left = (deadline - .now).milliseconds
        if left <= 0 { throw .timedOut }
        return Int32(clamping: left)
    }

    // MARK: Addresses

    private static func addresses(
        of place: SocketPlace,
        until deadline: ContinuousClock.Instant
    ) throws(Errno) -> [[UInt8]] {
        switch place {
        case .path(let path):
            var address = [UInt8](repeating: 0, count: Int(ctransport_address_size))
            let length = unsafe ctransport_unix_address(path, &address)
            if length == 0 { throw .nameTooLong }
            return [Array(address.prefix(Int(length)))]
        case .network(let host, let port, _):
            let numeric = resolve(host, port, isNumeric: true)
            if !numeric.isEmpty { return numeric }
            return try NameResolver.own.value.addresses(of: host, port, until: deadline)
        }
    }

    /// Returns the addresses of a host, at most 8; an empty list if there are none.
    ///
    /// The call may block for any time unless `isNumeric` is true.
    fileprivate static func resolve(_ host: String, _ port: UInt16, isNumeric: Bool) -> [[UInt8]] {
        let (size, most) = (Int(ctransport_address_size), 8)
        var bytes = [UInt8](repeating: 0, count: size * most)
        var lengths = [UInt32](repeating: 0, count: most)
        let count = unsafe ctransport_addresses(host, String(port), isNumeric, &bytes, &lengths, Int32(most))
        return (0..<max(0, Int(count))).map { index in
            Array(bytes[index * size..<index * size + Int(lengths[index])])
        }
    }
}

/// A resolver of names that caches results briefly and uses separate threads, which may block for any time.
private final class NameResolver: Sendable {
    static let own = PerProcess { NameResolver() }

    private struct Place: Hashable {
        let host: String
        let port: UInt16
    }

    private struct Finding {
        /// Nil while the lookup is in progress.
        var addresses: [[UInt8]]?
        var since: ContinuousClock.Instant
    }

    /// How long a result is reused, so that a change may go unnoticed.
    private static let memory: Duration = .seconds(30)

    private let threads = ThreadPool("diskcache-names", limit: 4)
    private let findings = Monitored<[Place: Finding]>([:])

    func addresses(
        of host: String,
        _ port: UInt16,
        until deadline: ContinuousClock.Instant
    ) throws(Errno) -> [[UInt8]] {
        let place = Place(host: host, port: port)
        let isNew = findings.withLock { findings -> Bool in
            // A failed lookup is repeated by the next caller.
            if let known = findings[place], known.addresses != [],
                known.addresses == nil || known.since + Self.memory > .now
            {
                return false
            }
            findings[place] = Finding(addresses: nil, since: .now)
            return true
        }
        if isNew {
            let isAccepted = threads.runOnThread {
                self.note(StreamSocket.resolve(host, port, isNumeric: false), of: place)
            }
            if !isAccepted {
                note([], of: place)
                throw .wouldBlock
            }
        }
        guard let found = findings.wait(until: deadline, for: { $0[place]?.addresses }) else {
            throw .timedOut
        }
        if found.isEmpty { throw .noDeviceOrAddress }
        return found
    }

    private func note(_ addresses: [[UInt8]], of place: Place) {
        findings.withLock { $0[place] = Finding(addresses: addresses, since: .now) }
        findings.wakeAll()
    }
}
