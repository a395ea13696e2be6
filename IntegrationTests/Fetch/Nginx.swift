// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import TestSupport
import Testing

/// A server nginx on loopback with files of the test, which ends when this object is released.
///
/// Below `fresh/` responses are fresh for an hour, below `stale/` they are stale but may replace an error for an hour, and
/// `slow/` sends 8 MiB/s.
final class Nginx: Sendable {
    static let program = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    let port: UInt16
    private let place: TemporaryDirectory
    private let process: Process

    init() throws {
        place = try TemporaryDirectory()
        for name in ["fresh", "stale", "slow"] {
            let folder = place.path + "/files/" + name
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        let root = place.path
        let server = try startServer { ports in
            try Data(Self.configuration(root, ports[0]).utf8).write(to: URL(fileURLWithPath: root + "/conf"))
            let process = Process()
            process.executableURL = URL(fileURLWithPath: Self.program ?? "/usr/sbin/nginx")
            process.arguments = ["-p", root, "-c", root + "/conf", "-e", root + "/error.log"]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            return process
        }
        process = server.process
        port = server.ports[0]
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

    /// Ends the server, so that connections are refused.
    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        process.waitUntilExit()
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

    func put(_ data: Data, at path: String) throws {
        try data.write(to: URL(fileURLWithPath: place.path + "/files/" + path))
    }

    /// The log of the answers: method, path, status, bytes, Range, If-None-Match.
    var log: [[String]] {
        let data = FileManager.default.contents(atPath: place.path + "/access.log") ?? Data()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map { line in
            line.split(separator: " ").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "\"")) }
        }
    }
}
