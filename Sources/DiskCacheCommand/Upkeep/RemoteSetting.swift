// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// One setting of the stores that other machines share, as `config` names it.
struct RemoteSetting {
    typealias Texts = (shown: String, exact: String)

    /// With "remote." before it.
    let name: String
    /// Sets it to what a text says.
    let assign: (String, inout CacheConfiguration.Remote) throws(Failure) -> Void
    /// Sets it to what it is by itself.
    let unset: (inout CacheConfiguration.Remote) -> Void
    /// For people, and exactly, as `set` takes it; nil if it is not set.
    let texts: (CacheConfiguration.Remote) -> Texts?

    private init<Value: Equatable>(
        _ name: String,
        _ path: WritableKeyPath<CacheConfiguration.Remote, Value>,
        _ parse: @escaping (String) throws(Failure) -> Value,
        _ texts: @escaping (Value) -> Texts
    ) {
        self.name = "remote." + name
        let usual = CacheConfiguration.Remote(levels: [])[keyPath: path]
        assign = { (text, remote) throws(Failure) in remote[keyPath: path] = try parse(text) }
        unset = { $0[keyPath: path] = usual }
        self.texts = { remote in
            let value = remote[keyPath: path]
            return value == usual ? nil : texts(value)
        }
    }

    /// In the order in which they are shown.
    static var all: [RemoteSetting] {
        [
            RemoteSetting("servers", \.levels, servers) { same(RemoteSetting.text($0)) },
            RemoteSetting("mode", \.mode, mode) { same($0.rawValue) },
            RemoteSetting("limit", \.limit, limit) { same(text($0)) },
            RemoteSetting("namespace", \.namespace, namespace, same),
            RemoteSetting("path", \.path, path, same),
            RemoteSetting("format", \.format, format) { same($0.rawValue) },
            RemoteSetting("minimumSize", \.minimumSize, size, sizes),
            RemoteSetting("maximumSize", \.maximumSize, size, sizes),
            RemoteSetting("tags", \.tags, tags) { same($0.joined(separator: ",")) },
            RemoteSetting("authorityFile", \.authorityFile, file) { same($0 ?? "") },
            RemoteSetting("certificateFile", \.certificateFile, file) { same($0 ?? "") },
            RemoteSetting("certificateKeyFile", \.certificateKeyFile, file) { same($0 ?? "") },
            RemoteSetting("credentials", \.credentials, file) { same($0 ?? "") },
        ]
    }

    /// What `config --help` says of them.
    static let help = """
          remote.servers      stores that other machines share: URL[,URL…]; a value goes to one of them.
                              After a semicolon come those that are asked next: 'redis://a;http://b:8080/'
          remote.mode         off, read, or readWrite, as it is by itself
          remote.limit        how much longer a get may take because of them: 250ms
          remote.namespace    keeps apart those who share the servers and nothing else
          remote.path         where a value is: {namespace}/{kind}/{digest}
          remote.format       action, as Bazel's remote cache has it, or plain
          remote.minimumSize, remote.maximumSize    of values that go there: 0, 16M
          remote.tags         only values with one of these tags go there: TAG[,TAG…]
          remote.authorityFile    authorities (PEM) for https: and rediss:; SSL_CERT_FILE or the system's
          remote.certificateFile, remote.certificateKeyFile    a certificate (PEM) of our own for servers
                              that ask for one, and its key if that is in another file
          remote.credentials  a file with lines `host = user:password` that nobody else can read
        """

    // MARK: Texts

    private static func same(_ text: String) -> Texts { (text, text) }

    private static func text(_ levels: [[CacheConfiguration.Remote.Server]]) -> String {
        levels.map { $0.map(\.url).joined(separator: ",") }.joined(separator: ";")
    }

    private static func text(_ span: Duration) -> String {
        "\(Int(saturating: span.inSeconds * 1000))ms"
    }

    private static func sizes(_ bytes: Int64) -> Texts { (Quantity.text(bytes: bytes), "\(bytes)") }

    // MARK: Parsing

    /// Weights and the like, which no command sets, are those of config.json: see
    /// ``RemoteSetting/kept(_:from:)``.
    private static func servers(_ text: String) throws(Failure) -> [[CacheConfiguration.Remote.Server]] {
        var levels: [[CacheConfiguration.Remote.Server]] = []
        for level in text.split(separator: ";") {
            var servers: [CacheConfiguration.Remote.Server] = []
            for word in level.split(separator: ",") { servers.append(.init(try url(String(word)))) }
            levels.append(servers)
        }
        if levels.isEmpty { throw .usage("it names no server: give URL[,URL…], or use `config unset`") }
        return levels
    }

    private static func url(_ text: String) throws(Failure) -> String {
        let scheme = text.prefix { $0 != ":" }
        let rest = text.dropFirst(scheme.count)
        guard ["http", "https", "redis", "rediss", "redis+unix"].contains(scheme),
            rest.hasPrefix("://"), rest.count > 3, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            let shown = FetchText.withoutCredentials(text)
            throw .usage("'\(shown)' is no server: write it like http://cache:8080/ or redis://cache:6379/0")
        }
        // Not in a file that everybody may copy, and not in an error.
        guard FetchText.withoutCredentials(text) == text else {
            throw .usage("a URL has a user or a password: name a file for them with remote.credentials")
        }
        return text
    }

    private static func mode(_ text: String) throws(Failure) -> CacheConfiguration.Remote.Mode {
        if let mode = CacheConfiguration.Remote.Mode(rawValue: text) { return mode }
        throw .usage("unknown mode '\(text)': give off, read or readWrite")
    }

    private static func format(_ text: String) throws(Failure) -> CacheConfiguration.Remote.Format {
        if let format = CacheConfiguration.Remote.Format(rawValue: text) { return format }
        throw .usage("unknown format '\(text)': give action or plain")
    }

    private static func limit(_ text: String) throws(Failure) -> Duration {
        let span = try Quantity.duration(text)
        if (Duration.milliseconds(1)...Duration.seconds(3600)).contains(span) { return span }
        throw .usage("\(text) is out of range: give 1ms to 1h, and remote.mode off for none")
    }

    private static func namespace(_ text: String) throws(Failure) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"):
                true
            default: "-_.".utf8.contains(byte)
            }
        }
        guard isPlain, (1...64).contains(text.utf8.count) else {
            throw .usage("'\(text)' is no namespace: give at most 64 letters, digits, -, _ and .")
        }
        return text
    }

    private static func path(_ text: String) throws(Failure) -> String {
        if text.contains("{digest}") { return text }
        throw .usage("'\(text)' has no {digest}: write it like {namespace}/{kind}/{digest}")
    }

    private static func size(_ text: String) throws(Failure) -> Int64 {
        try Quantity.size(text).bytes
    }

    private static func tags(_ text: String) throws(Failure) -> [String] {
        text.split(separator: ",").map(String.init)
    }

    private static func file(_ text: String) throws(Failure) -> String? {
        if text.hasPrefix("/") { return text }
        throw .usage("'\(text)' is a relative path: give an absolute one")
    }
}

extension RemoteSetting {
    /// Does what `config` was asked to with a name that begins with "remote.".
    static func run(_ verb: String, _ arguments: Arguments) throws -> ExitStatus {
        let setting = try named(arguments.operands[1])
        switch verb {
        case "get":
            let remote = try arguments.requireCache().directory.remoteConfiguration()
            let texts = remote.flatMap { setting.texts($0) }
            let json: JSON.Object = texts == nil ? [:] : [setting.name: texts?.exact]
            try arguments.print(texts.map { $0.exact + "\n" } ?? "", json: json)
            return texts == nil ? .miss : .done
        case "set":
            let text = arguments.operands[2]
            // An invalid value is refused before a cache is created for it.
            var probe = CacheConfiguration.Remote(levels: [])
            try setting.parse(text, &probe)
            let directory = try arguments.openCache().directory
            let before = try directory.remoteConfiguration()
            var remote = before ?? CacheConfiguration.Remote(levels: [])
            try setting.parse(text, &remote)
            if let before { remote.levels = kept(remote.levels, from: before.levels) }
            guard remote.minimumSize <= remote.maximumSize else {
                throw Failure.usage("config: remote.minimumSize must not be above remote.maximumSize")
            }
            try directory.setRemoteConfiguration(remote)
            try arguments.print("", json: remote.described)
        default:
            let directory = try arguments.requireCache().directory
            guard var remote = try directory.remoteConfiguration() else { break }
            setting.unset(&remote)
            // Where nothing is left to be said nothing is said.
            let isUsual = remote == CacheConfiguration.Remote(levels: [])
            try directory.setRemoteConfiguration(isUsual ? nil : remote)
            try arguments.print("", json: remote.described)
        }
        return .done
    }

    private static func named(_ name: String) throws(Failure) -> RemoteSetting {
        if let setting = all.first(where: { $0.name == name }) { return setting }
        let names = all.map(\.name).joined(separator: ", ")
        throw .usage("config: unknown setting '\(name)': give one of \(names)")
    }

    private func parse(_ text: String, _ remote: inout CacheConfiguration.Remote) throws(Failure) {
        do throws(Failure) {
            try assign(text, &remote)
        } catch {
            throw .usage("config: \(name): \(error.message)")
        }
    }

    /// Servers that were there already stay as they were: with their weights, kinds and regions.
    static func kept(
        _ levels: [[CacheConfiguration.Remote.Server]],
        from before: [[CacheConfiguration.Remote.Server]]
    ) -> [[CacheConfiguration.Remote.Server]] {
        let known = before.joined()
        return levels.map { $0.map { server in known.first { $0.url == server.url } ?? server } }
    }
}

extension CacheConfiguration.Remote {
    /// As `config --json` writes it: the keys of config.json; what is as it is by itself is left out.
    var described: JSON.Object {
        let groups = levels.map { level in
            level.map { server -> JSON.Object in
                [
                    "url": server.url, "weight": server.weight == 1 ? nil : server.weight,
                    "kind": server.kind?.rawValue, "region": server.region,
                ]
            }
        }
        let usual = CacheConfiguration.Remote(levels: [])
        return [
            "servers": groups.count == 1 ? groups[0] : nil, "levels": groups.count > 1 ? groups : nil,
            "mode": mode.rawValue, "limit": "\(Int(saturating: limit.inSeconds * 1000))ms",
            "namespace": namespace.isEmpty ? nil : namespace, "path": path == usual.path ? nil : path,
            "format": format == usual.format ? nil : format.rawValue,
            "minimumSize": minimumSize == usual.minimumSize ? nil : minimumSize,
            "maximumSize": maximumSize == usual.maximumSize ? nil : maximumSize,
            "tags": tags.isEmpty ? nil : tags, "authorityFile": authorityFile,
            "certificateFile": certificateFile, "certificateKeyFile": certificateKeyFile,
            "credentials": credentials,
        ]
    }
}
