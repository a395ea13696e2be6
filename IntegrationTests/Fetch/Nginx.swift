// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import TestSupport
import Testing

/// nginx on loopback, with files of the test's; ended when this goes.
///
/// Below `fresh/` responses are fresh for an hour, below `stale/` they are not but may take the place of an
/// error for an hour, and `slow/` sends 8 MiB/s.
final class Nginx: Sendable {
    static let program = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    let port: UInt16
    private let place: TemporaryDirectory
    private let process: Process

    init() throws {
        place = try TemporaryDirectory()
        port = try Self.freePort()
        for name in ["fresh", "stale", "slow"] {
            let folder = place.path + "/files/" + name
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try Data(Self.configuration(place.path, port).utf8).write(
            to: URL(fileURLWithPath: place.path + "/conf")
        )
        process = Process()
        process.executableURL = URL(fileURLWithPath: Self.program ?? "/usr/sbin/nginx")
        process.arguments = ["-p", place.path, "-c", place.path + "/conf", "-e", place.path + "/error.log"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let port = port
        waitUntil("nginx listens") { Self.accepts(port) }
    }

    deinit { stop() }

    private static func configuration(_ root: String, _ port: UInt16) -> String {
        """
        daemon off;
        \(geteuid() == 0 ? "user root;" : "")
        pid \(root)/pid;
        error_log \(root)/error.log;
        worker_processes 1;
        events { worker_connections 64; }
        http {
            log_format test '$request_method $uri $status $body_bytes_sent "$http_range" "$http_if_none_match"';
            access_log \(root)/access.log test;
            client_body_temp_path \(root)/body;
            proxy_temp_path \(root)/proxy;
            fastcgi_temp_path \(root)/fastcgi;
            server {
                listen 127.0.0.1:\(port);
                root \(root)/files;
                location /fresh/ { add_header Cache-Control "max-age=3600"; }
                location /stale/ { add_header Cache-Control "max-age=0, stale-if-error=3600"; }
                location /slow/ { add_header Cache-Control "max-age=3600"; limit_rate 8m; }
            }
        }

        """
    }

    /// Ends it; connections are refused then.
    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        process.waitUntilExit()
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

    func put(_ data: Data, at path: String) throws {
        try data.write(to: URL(fileURLWithPath: place.path + "/files/" + path))
    }

    /// What it has answered: method, path, status, bytes, Range, If-None-Match.
    var log: [[String]] {
        let data = FileManager.default.contents(atPath: place.path + "/access.log") ?? Data()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map { line in
            line.split(separator: " ").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "\"")) }
        }
    }

    private static func freePort() throws -> UInt16 {
        try withAddress(port: 0) { number, address, length in
            var length = length
            guard bind(number, address, length) == 0, getsockname(number, address, &length) == 0 else {
                throw POSIXError(.EADDRNOTAVAIL)
            }
            return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                UInt16(bigEndian: $0.pointee.sin_port)
            }
        }
    }

    private static func accepts(_ port: UInt16) -> Bool {
        withAddress(port: port) { number, address, length in connect(number, address, length) == 0 }
    }

    /// With a new socket, and an address on loopback.
    private static func withAddress<Value>(
        port: UInt16,
        _ body: (Int32, UnsafeMutablePointer<sockaddr>, socklen_t) throws -> Value
    ) rethrows -> Value {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(number) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try body(number, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
