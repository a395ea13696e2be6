// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// An nginx on loopback with a directory of files, which notes each request; ended when this goes.
///
/// What it sends may be stored, and has to be validated each time that it is used (`no-cache`), by its ETag.
final class PictureServer {
    /// Where it is installed; nil: it is not.
    static let program: String? = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let directories = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
        return directories.map { $0 + "/nginx" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    let port: UInt16
    private let directory: String
    private let process = Process()

    /// Serves `directory/files`.
    init(_ directory: String) throws {
        self.directory = directory
        port = try Self.freePort()
        for name in ["files", "tmp"] {
            let path = directory + "/" + name
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        let file = directory + "/nginx.conf"
        try Data(configuration.utf8).write(to: URL(fileURLWithPath: file))
        process.executableURL = URL(fileURLWithPath: Self.program ?? "nginx")
        process.arguments = [
            "-p", directory, "-c", file, "-e", directory + "/error.log", "-g", "daemon off;",
        ]
        try process.run()
        // It has its files and its port by then.
        while process.isRunning, !isListening { usleep(1_000) }
        guard process.isRunning else { throw POSIXError(.ECONNREFUSED) }
    }

    deinit { stop() }

    /// The URL of a file.
    func url(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

    /// Ends it when it has written down all that it has answered.
    func stop() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGQUIT)
        process.waitUntilExit()
    }

    /// After ``stop()``: each request as "GET 200 /a.jpg".
    func requests() throws -> [String] {
        try String(contentsOfFile: directory + "/access.log", encoding: .utf8)
            .split(separator: "\n").map(String.init)
    }

    private var configuration: String {
        """
        \(geteuid() == 0 ? "user root;" : "")
        worker_processes 1;
        pid nginx.pid;
        events { worker_connections 256; }
        http {
            log_format short '$request_method $status $uri';
            access_log access.log short;
            client_body_temp_path tmp;
            proxy_temp_path tmp;
            fastcgi_temp_path tmp;
            uwsgi_temp_path tmp;
            scgi_temp_path tmp;
            # A stopped one is to be gone at once, with what is kept alive.
            keepalive_timeout 1s;
            server {
                listen 127.0.0.1:\(port);
                root files;
                add_header Cache-Control no-cache;
            }
        }
        """
    }

    private var isListening: Bool {
        (try? Self.onLoopback(port) { connect($0, $1, $2) == 0 }) ?? false
    }

    /// One that nobody uses at the moment.
    private static func freePort() throws -> UInt16 {
        var port: UInt16 = 0
        let isFree = try onLoopback(0) { number, address, length in
            guard bind(number, address, length) == 0 else { return false }
            var bound = sockaddr_in()
            var boundLength = length
            let status = withUnsafeMutablePointer(to: &bound) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getsockname(number, $0, &boundLength)
                }
            }
            port = UInt16(bigEndian: bound.sin_port)
            return status == 0
        }
        guard isFree else { throw POSIXError(.EADDRNOTAVAIL) }
        return port
    }

    /// Has `body` do something with a socket and an address of this machine.
    private static func onLoopback(
        _ port: UInt16,
        _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Bool
    ) throws -> Bool {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw POSIXError(.EMFILE) }
        defer { close(number) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
