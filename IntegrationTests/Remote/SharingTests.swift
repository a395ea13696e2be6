// SPDX-License-Identifier: Apache-2.0

import DiskCacheRemote
import Foundation
import Glibc
import TestSupport
import Testing

private let hasNginx = RemoteServerProcess.Kind.nginx.program != nil
private let hasRedis = RemoteServerProcess.Kind.redis.program != nil
private let moto = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .map { "\($0)/moto_server" }.first { FileManager.default.isExecutableFile(atPath: $0) }
private let hasOpenSSL = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

/// Tests of machines, which are directories here, that share values through real servers.
@Suite(.takesTurns) struct SharingTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ machine: String, _ remote: CacheConfiguration.Remote) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        var remote = remote
        // Speed is measured elsewhere, and must not fail a test of results.
        remote.limit = .seconds(30)
        return try SharedCache(
            at: "\(directory.path)/\(machine)",
            configuration: configuration,
            remote: remote
        )
    }

    /// Checks that one machine gets the computed values of another, of any length, and misses its removed ones.
    private func expectSharing(_ remote: CacheConfiguration.Remote) throws {
        let (one, other) = (try open("one", remote), try open("other", remote))
        for (key, length) in [("empty", 0), ("small", 100), ("large", 1 << 20)] {
            let value = Data(SeededGenerator.bytes(length, seed: 7))
            #expect(one.value(forKey: key, options: PutOptions(expires: .days(1))) { value } == value)
            waitUntil("\(key) is sent") { one.directory.remote?.waiting == 0 }
            let found = other.value(forKey: key) { Data("computed".utf8) }
            #expect(found == value, "\(key)")
        }
        #expect(other.directory.activity.remoteHits == 3 && other.directory.activity.computations == 0)
        try one.remove(forKey: "small")
        waitUntil("the removal is sent") { one.directory.remote?.waiting == 0 }
        let third = try open("third", remote)
        #expect(try third.get(forKey: "small") == nil)
        #expect(try third.get(forKey: "large") != nil)
    }

    @Test(.enabled(if: hasNginx, "nginx is not installed"))
    func `machines share values through nginx`() throws {
        let server = try RemoteServerProcess(.nginx)
        try expectSharing(CacheConfiguration.Remote(servers: [server.url]))
        let requests = server.requests
        #expect(
            requests.contains { $0.hasPrefix("PUT /ac/") } && requests.contains { $0.hasPrefix("PUT /cas/") }
        )
    }

    @Test(.enabled(if: hasNginx, "nginx is not installed"))
    func `machines share plain values through nginx, in a namespace and at a custom path`() throws {
        let server = try RemoteServerProcess(.nginx)
        var remote = CacheConfiguration.Remote(servers: [server.url + "/builds/"])
        remote.format = .plain
        remote.namespace = "team"
        remote.path = "cache/{namespace}/{digest:2}/{digest}"
        try expectSharing(remote)
        #expect(server.requests.contains { $0.hasPrefix("PUT /builds/cache/team/") })
    }

    @Test(.enabled(if: hasRedis, "redis-server is not installed"))
    func `machines share values through Redis, over TCP and a unix socket`() throws {
        let server = try RemoteServerProcess(.redis)
        try expectSharing(CacheConfiguration.Remote(servers: [server.url]))
        let other = try open("fourth", CacheConfiguration.Remote(servers: [server.socketURL]))
        #expect(try other.get(forKey: "large")?.source == .remote)
    }

    @Test(.enabled(if: hasRedis && hasOpenSSL, "redis-server or openssl is not installed"))
    func `machines share values through Redis over TLS if they trust its authority`() throws {
        let (certificate, key) = (directory.path + "/server.pem", directory.path + "/server.key")
        let script = """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=server \\
                -addext subjectAltName=IP:127.0.0.1 -keyout "$1" -out "$2" 2> /dev/null
            """
        let openssl = try Process.run(
            URL(fileURLWithPath: "/bin/sh"),
            arguments: ["-c", script, "sh", key, certificate]
        )
        openssl.waitUntilExit()
        try #require(openssl.terminationStatus == 0)
        let server = try RemoteServerProcess(
            .redis,
            [
                "--tls-port", "PORT", "--tls-cert-file", certificate, "--tls-key-file", key,
                "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no",
            ]
        )
        let (url, go) = ("rediss://127.0.0.1:\(server.securePort)", directory.path + "/go")
        let trusting = ["SSL_CERT_FILE": certificate]
        let writer = try RemoteProbeRun(["\(directory.path)/one", url, "put", "3"], trusting)
        #expect(writer.line() == "done")
        let plain = try open("plain", CacheConfiguration.Remote(servers: [server.url]))
        waitUntil("all is there") { (try? plain.get(forKey: "key 2")) != nil }
        makeFile(go)
        for (environment, value) in [(trusting, "value 2"), ([:], "none")] {
            let arguments = ["\(directory.path)/machine \(value)", url, "get", "key 2", go]
            let reader = try RemoteProbeRun(arguments, environment)
            #expect(reader.line() == "ready")
            #expect(reader.line() == value)
        }
    }

    @Test(
        .enabled(if: TLSServer.isInstalled && hasRedis, "nginx, redis-server or openssl is not installed"),
        arguments: [RemoteServerProcess.Kind.nginx, .redis]
    )
    func `machines share values through servers that verify clients`(kind: RemoteServerProcess.Kind) throws {
        let server = try TLSServer(
            """
            dav_methods PUT DELETE; create_full_put_path on; client_max_body_size 16m;
            ssl_client_certificate DIRECTORY/authority.pem; ssl_verify_client on;
            """
        )
        let options = [
            "--tls-port", "PORT", "--tls-cert-file", server.path("server.pem"),
            "--tls-key-file", server.path("server.key"), "--tls-ca-cert-file", server.path("authority.pem"),
        ]
        let redis = kind == .redis ? try RemoteServerProcess(.redis, options) : nil
        let url = redis.map { "rediss://127.0.0.1:\($0.securePort)" } ?? server.url()
        var remote = CacheConfiguration.Remote(servers: [url])
        remote.authorityFile = server.path("authority.pem")
        let unknown = try open("unknown", remote)
        remote.certificateFile = server.path("client.pem")
        remote.certificateKeyFile = server.path("client.key")
        try expectSharing(remote)
        #expect(try unknown.get(forKey: "large") == nil)
        #expect(unknown.directory.activity.remoteErrors > 0)
    }

    @Test(.enabled(if: hasNginx && hasRedis, "nginx or redis-server is not installed"))
    func `machines share values through a chain whose first server loses its data`() throws {
        let (redis, nginx) = (try RemoteServerProcess(.redis), try RemoteServerProcess(.nginx))
        let remote = CacheConfiguration.Remote(levels: [[.init(redis.url)], [.init(nginx.url)]])
        try expectSharing(remote)
        redis.end()
        try redis.start()
        let fifth = try open("fifth", remote)
        #expect(try fifth.get(forKey: "large")?.source == .remote)
        waitUntil("the first has it again") { fifth.directory.activity.remoteWrites == 1 }
        let near = try open("sixth", CacheConfiguration.Remote(servers: [redis.url]))
        #expect(try near.get(forKey: "large")?.source == .remote)
    }

    /// moto from PyPI stores objects as S3 does, conditions included, and verifies no signatures.
    @Test(.enabled(if: moto != nil, "moto_server is not installed"))
    func `machines share values through S3`() throws {
        let server = try startServer { ports in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: moto ?? "")
            process.arguments = ["-H", "127.0.0.1", "-p", "\(ports[0])"]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            return process
        }
        defer {
            server.process.terminate()
            server.process.waitUntilExit()
        }
        let address = "127.0.0.1:\(server.ports[0])"
        let create = """
            import http.client
            connection = http.client.HTTPConnection("\(address)")
            credential = "Credential=a/20260101/us-east-1/s3/aws4_request"
            signature = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=b"
            connection.request("PUT", "/bucket", headers={"Authorization": signature})
            assert connection.getresponse().status == 200
            """
        #expect(try BuiltCommand.run("/usr/bin/env", ["python3", "-c", create]).status == 0)
        let credentials = directory.path + "/credentials"
        makeFile(credentials, "\(address) = ACCESS:SECRET\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: credentials)
        var remote = CacheConfiguration.Remote(levels: [[.init("http://\(address)/bucket", kind: .s3)]])
        remote.credentials = credentials
        try expectSharing(remote)
    }

    @Test(.enabled(if: hasRedis, "redis-server is not installed"))
    func `a Redis whose memory is full still returns its values`() throws {
        let server = try RemoteServerProcess(.redis, ["--maxmemory", "4mb"])
        let remote = CacheConfiguration.Remote(servers: [server.url])
        let (one, other) = (try open("one", remote), try open("other", remote))
        try other.put("theirs", forKey: "key")
        waitUntil("it is sent") { other.directory.activity.remoteWrites == 1 }
        for number in 0..<4 {
            try one.put(Data(SeededGenerator.bytes(5 << 20, seed: UInt64(number))), forKey: "\(number)")
        }
        waitUntil("it has refused them often") { one.directory.activity.remoteErrors >= 4 }
        #expect(one.directory.remote?.servers.first?.breaker == "closed")
        #expect(try one.get(forKey: "key")?.source == .remote)
    }

    @Test(.enabled(if: hasNginx, "nginx is not installed"))
    func `two servers share the values, and a dead one costs only its share`() throws {
        let servers = [try RemoteServerProcess(.nginx), try RemoteServerProcess(.nginx)]
        let remote = CacheConfiguration.Remote(servers: servers.map(\.url))
        let one = try open("one", remote)
        for number in 0..<100 { try one.put("\(number)", forKey: "\(number)") }
        waitUntil("all is sent") { one.directory.activity.remoteWrites == 100 }
        // A server logs a request after its answer, and a request whose answer was late may be sent again.
        func noted() -> [Int] {
            servers.map { Set($0.requests.filter { $0.hasPrefix("PUT /ac/") }).count }
        }
        waitUntil("the servers have noted it") { noted().reduce(0, +) >= 100 }
        let counts = noted()
        #expect(counts[0] + counts[1] == 100 && counts.allSatisfy { $0 > 20 })
        servers[0].end()
        let other = try open("other", remote)
        let found = try (0..<100).filter { try other.get(forKey: "\($0)") != nil }.count
        #expect(found == counts[1])
    }

    @Test(.enabled(if: hasNginx, "nginx is not installed"), arguments: [100, 1 << 20])
    func `a damaged remote value is a miss, and its entry is removed`(length: Int) throws {
        let server = try RemoteServerProcess(.nginx)
        let remote = CacheConfiguration.Remote(servers: [server.url])
        let (one, other) = (try open("one", remote), try open("other", remote))
        try one.put(Data(SeededGenerator.bytes(length, seed: 3)), forKey: "key")
        waitUntil("it is sent") { one.directory.activity.remoteWrites == 1 }
        let data = server.directory.path + "/data"
        // The object if it has its own file, otherwise the entry in which it is inlined.
        let file = server.directory.files(below: "data").first { $0.hasPrefix("cas/") == (length > 100_000) }
        let path = data + "/" + (try #require(file))
        var bytes = try #require(FileManager.default.contents(atPath: path))
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: URL(fileURLWithPath: path))
        #expect(try other.get(forKey: "key") == nil)
        #expect(other.directory.activity.remoteCorruptions == 1)
        waitUntil("the entry is removed") {
            !server.directory.files(below: "data").contains { $0.hasPrefix("ac/") }
        }
        #expect(
            FileManager.default.fileExists(atPath: path) == (length > 100_000),
            "others may need the content"
        )
    }

    @Test(.enabled(if: hasNginx, "nginx is not installed"))
    func `eight processes that want a value send one request`() throws {
        let server = try RemoteServerProcess(.nginx)
        let one = try open("one", CacheConfiguration.Remote(servers: [server.url]))
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { one.directory.activity.remoteWrites == 1 }
        // The sender has looked for the entry before it sent its own.
        let path = "GET /ac/\(Digest(of: Data("key".utf8)))"
        func requests() -> Int { server.requests.filter { $0.hasPrefix(path) }.count }
        waitUntil("it is logged") { requests() == 1 }
        let go = directory.path + "/go"
        let probes = try (0..<8).map { _ in
            try RemoteProbeRun(["\(directory.path)/other", server.url, "get", "key", go])
        }
        for probe in probes { #expect(probe.line() == "ready") }
        makeFile(go)
        for probe in probes { #expect(probe.line() == "value") }
        #expect(requests() == 2)
    }

    @Test(.enabled(if: hasRedis, "redis-server is not installed"))
    func `the next process sends the changes that a killed process has left`() throws {
        let server = try RemoteServerProcess(.redis)
        server.end()
        let probe = try RemoteProbeRun(["\(directory.path)/one", server.url, "put", "50"])
        #expect(probe.line() == "done")
        probe.kill()
        try server.start()
        let remote = CacheConfiguration.Remote(servers: [server.url])
        let one = try open("one", remote)
        waitUntil("all is sent") { one.directory.activity.remoteWrites >= 50 }
        let other = try open("other", remote)
        for number in 0..<50 {
            let hit = try other.get(forKey: "key \(number)")
            #expect(hit?.value == Data("value \(number)".utf8))
        }
    }
}

/// A process of `Probes remote`.
private final class RemoteProbeRun {
    private let process = Process()
    private let pipe = Foundation.Pipe()
    private var rest = ""

    init(_ arguments: [String], _ environment: [String: String] = [:]) throws {
        process.executableURL = URL(fileURLWithPath: BuiltCommand.probes)
        process.arguments = ["remote"] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = pipe
        try process.run()
    }

    deinit { kill() }

    /// Returns the next line of the output, or nil if the program has ended.
    func line() -> String? {
        while true {
            if let end = rest.firstIndex(of: "\n") {
                defer { rest = String(rest[rest.index(after: end)...]) }
                return String(rest[..<end])
            }
            let data = pipe.fileHandleForReading.availableData
            if data.isEmpty { return nil }
            rest += String(decoding: data, as: UTF8.self)
        }
    }

    func kill() {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
