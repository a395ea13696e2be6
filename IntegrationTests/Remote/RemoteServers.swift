// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

/// A server on 127.0.0.1 that a test has started, and may stop, kill and restart at the same port.
final class RemoteServerProcess: Sendable {
    /// The program of a server.
    enum Kind: String {
        case nginx
        case redis = "redis-server"

        /// The path of the program, or nil if it is not installed.
        var program: String? {
            let places = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/sbin"]
            return places.map { "\($0)/\(rawValue)" }.first {
                FileManager.default.isExecutableFile(atPath: $0)
            }
        }
    }

    let kind: Kind
    let port: UInt16
    let directory: TemporaryDirectory
    /// The TLS port of Redis, if the options contain `--tls-port PORT`.
    let securePort: UInt16
    private let process = Locked<Process?>(nil)
    private let options: [String]

    /// Starts the server, Redis with these additional options.
    init(_ kind: Kind, _ options: [String] = []) throws {
        self.kind = kind
        // Not below $DISKCACHE_TEST_DIR: the file system of a server makes no difference.
        let directory = try TemporaryDirectory(below: NSTemporaryDirectory())
        let server = try startServer(ports: options.contains("PORT") ? 2 : 1) { ports in
            if kind == .nginx { try Self.configure(directory, ports[0]) }
            let options = options.map { $0 == "PORT" ? "\(ports[1])" : $0 }
            return try Self.start(kind, directory, ports[0], options)
        }
        self.directory = directory
        port = server.ports[0]
        securePort = server.ports[server.ports.count - 1]
        let securePort = securePort
        self.options = options.map { $0 == "PORT" ? "\(securePort)" : $0 }
        process.withLock { $0 = server.process }
    }

    deinit {
        end()
    }

    var url: String { kind == .nginx ? "http://127.0.0.1:\(port)" : "redis://127.0.0.1:\(port)" }

    /// The URL of the unix socket.
    var socketURL: String { "redis+unix://\(directory.path)/socket" }

    /// The requests that the server has logged, such as `GET /ac/…`.
    var requests: [String] {
        let text = (try? String(contentsOfFile: directory.path + "/access.log", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    /// Restarts the server at the same port.
    func start() throws {
        let process = try Self.start(kind, directory, port, options)
        self.process.withLock { $0 = process }
        try #require(awaitServer(process, at: [port]))
    }

    private static func start(
        _ kind: Kind,
        _ directory: TemporaryDirectory,
        _ port: UInt16,
        _ options: [String]
    ) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(kind.program))
        process.arguments =
            switch kind {
            case .nginx: ["-p", directory.path, "-e", directory.path + "/error.log", "-c", "nginx.conf"]
            case .redis:
                [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                    "--unixsocket", directory.path + "/socket", "--dir", directory.path,
                ] + options
            }
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    /// Kills the server.
    func end() {
        guard let process = process.withLock({ $0.take() }) else { return }
        Glibc.kill(process.processIdentifier, SIGCONT)
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func pause() { send(SIGSTOP) }

    func goOn() { send(SIGCONT) }

    private func send(_ signal: Int32) {
        guard let number = process.withLock({ $0?.processIdentifier }) else { return }
        Glibc.kill(number, signal)
    }

    /// Writes a configuration with a single process, which can be stopped and runs as the user of the tests.
    private static func configure(_ directory: TemporaryDirectory, _ port: UInt16) throws {
        for name in ["data", "temp"] {
            try FileManager.default.createDirectory(
                atPath: "\(directory.path)/\(name)",
                withIntermediateDirectories: true
            )
        }
        let temporaries = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(directory.path)/temp/\($0);" }.joined(separator: "\n")
        makeFile(
            directory.path + "/nginx.conf",
            """
            daemon off;
            master_process off;
            pid \(directory.path)/pid;
            events { worker_connections 256; }
            http {
                log_format short '$request_method $uri $status';
                access_log \(directory.path)/access.log short;
                \(temporaries)
                server {
                    listen 127.0.0.1:\(port);
                    client_max_body_size 64m;
                    location / {
                        root \(directory.path)/data;
                        dav_methods PUT DELETE;
                        create_full_put_path on;
                    }
                }
            }
            """
        )
    }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
}

/// Returns a connection to a port of this machine, or -1 if no server listens.
func connected(to port: UInt16) -> Int32 {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = loopback(port)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    if result == 0 { return number }
    close(number)
    return -1
}

/// A proxy that forwards bytes between its own port and another one, and delays each piece of an answer.
final class SlowProxy: Sendable {
    let port: UInt16
    private let listening: Int32
    private let forwarded: Locked<Int>.Box

    /// The number of bytes that clients have sent through it.
    var requestBytes: Int { forwarded.value.withLock { $0 } }

    init(to target: UInt16, pause: UInt32) throws {
        let socket = try ListeningSocket()
        (listening, port) = (socket.number, socket.port)
        let listening = listening
        let forwarded = Locked<Int>.Box(0)
        self.forwarded = forwarded
        Thread.detachNewThread {
            while true {
                let client = accept(listening, nil, nil)
                guard client >= 0 else { return }
                let server = connected(to: target)
                Thread.detachNewThread {
                    Self.pass(from: client, to: server, pause: 0) { count in
                        forwarded.value.withLock { $0 += count }
                    }
                }
                Thread.detachNewThread { Self.pass(from: server, to: client, pause: pause) }
            }
        }
    }

    deinit {
        shutdown(listening, Int32(SHUT_RDWR))
        close(listening)
    }

    private static func pass(
        from source: Int32,
        to target: Int32,
        pause: UInt32,
        _ passed: (Int) -> Void = { _ in }
    ) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &bytes, bytes.count, 0)
            guard count > 0 else { break }
            passed(count)
            if pause > 0 { usleep(pause) }
            guard Glibc.send(target, bytes, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        // Both threads of a connection get here; the descriptors stay open until the test process ends.
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}

/// A proxy that forwards connections to another port of this machine, or answers every request with one response.
final class ServerGate: Sendable {
    let port: UInt16
    private let listening: Int32
    private let response = Locked<String?>.Box(nil)

    init(to target: UInt16) throws {
        let socket = try ListeningSocket()
        (listening, port) = (socket.number, socket.port)
        let (listening, response) = (listening, response)
        Thread.detachNewThread {
            while true {
                let client = accept(listening, nil, nil)
                guard client >= 0 else { return }
                let server = connected(to: target)
                Thread.detachNewThread { Self.pass(from: client, to: server, response) }
                Thread.detachNewThread { Self.pass(from: server, to: client, nil) }
            }
        }
    }

    deinit {
        shutdown(listening, Int32(SHUT_RDWR))
        close(listening)
    }

    /// Answers every request from now on with this status line, and closes the connection; nil to forward again.
    func answer(_ status: String?) {
        response.value.withLock {
            $0 = status.map { "\($0)\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok" }
        }
    }

    private static func pass(from source: Int32, to target: Int32, _ response: Locked<String?>.Box?) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &bytes, bytes.count, 0)
            guard count > 0 else { break }
            if let answer = response?.value.withLock({ $0 }) {
                _ = Glibc.send(source, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
                break
            }
            guard Glibc.send(target, bytes, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        // Both threads of a connection get here; the descriptors stay open until the test process ends.
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}

/// A socket that listens at a free port of 127.0.0.1.
private struct ListeningSocket {
    let number: Int32
    let port: UInt16

    init() throws {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, length) == 0 && listen(number, 64) == 0
                    && getsockname(number, $0, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
        self.number = number
        port = UInt16(bigEndian: address.sin_port)
    }
}
