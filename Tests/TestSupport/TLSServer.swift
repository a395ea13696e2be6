// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// An nginx server with TLS on 127.0.0.1, whose certificates come from a separate authority.
public final class TLSServer: Sendable {
    /// Whether nginx and openssl are installed.
    public static let isInstalled = program != nil && run(["openssl", "version"])
    private static let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// The port for TLS.
    public let port: UInt16
    /// The port without TLS, if `directives` contain `listen 127.0.0.1:PLAIN`.
    public let plainPort: UInt16
    private let directory: TemporaryDirectory
    private let process: Process

    /// Starts a server.
    ///
    /// - Parameter directives: Additional directives of the `server` block; the TLS port and the certificate are already
    ///   set.
    public init(_ directives: String = "") throws {
        directory = try TemporaryDirectory()
        try Self.makeCertificates(directory.path)
        try FileManager.default.createDirectory(
            atPath: directory.path + "/www",
            withIntermediateDirectories: true
        )
        let place = directory.path
        let server = try startServer(ports: directives.contains("PLAIN") ? 2 : 1) { ports in
            let directives = directives.replacing("PLAIN", with: "\(ports.last ?? 0)")
            return try Self.start(place, ports[0], directives)
        }
        process = server.process
        port = server.ports[0]
        plainPort = server.ports.last ?? 0
    }

    deinit {
        // SIGTERM may be blocked: if a Dispatch thread started the process, the process inherited that thread's blocked
        // signals.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Returns the URL of a path.
    public func url(_ path: String = "/", host: String = "127.0.0.1") -> String {
        "https://\(host):\(port)\(path)"
    }

    /// Returns the path of a generated file: `authority.pem`, `stranger.pem`, `client.pem` or `client.key`.
    public func path(_ name: String) -> String { "\(directory.path)/\(name)" }

    /// Puts a file into the server's root directory.
    public func serve(_ name: String, _ contents: Data) throws {
        try contents.write(to: URL(fileURLWithPath: "\(directory.path)/www/\(name)"))
    }

    private static func start(_ place: String, _ port: UInt16, _ directives: String) throws -> Process {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(place)/\($0);"
        }
        let text = """
            daemon off; master_process off; pid \(place)/pid; error_log \(place)/errors;
            events { worker_connections 64; }
            http {
                access_log off; \(temporary.joined(separator: " "))
                server {
                    listen 127.0.0.1:\(port) ssl http2; root \(place)/www;
                    ssl_certificate \(place)/server.pem; ssl_certificate_key \(place)/server.key;
                    \(directives.replacing("DIRECTORY", with: place))
                }
            }
            """
        try text.write(toFile: place + "/nginx.conf", atomically: false, encoding: .utf8)
        let process = Process()
        process.executableURL = program.map { URL(fileURLWithPath: $0) }
        process.arguments = ["-p", place, "-c", place + "/nginx.conf", "-e", place + "/errors"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    /// Creates an authority with certificates for a server and a client, and a second authority that has signed neither.
    private static func makeCertificates(_ place: String) throws {
        let script = """
            cd "$1" && umask 077
            key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
            for name in authority stranger; do
                openssl req -x509 $key -days 2 -subj "/CN=$name" -keyout $name.key -out $name.pem || exit 1
            done
            echo subjectAltName=IP:127.0.0.1,DNS:name.test > names
            for name in server client; do
                openssl req $key -subj "/CN=$name" -keyout $name.key -out $name.csr || exit 1
                openssl x509 -req -days 2 -in $name.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
                    -extfile names -out $name.pem || exit 1
            done
            """
        guard run(["sh", "-c", script, "sh", place]) else { throw POSIXError(.EIO) }
    }

    private static func run(_ words: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
