// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// One setting of the remote stores, with its name in `config`.
struct RemoteSetting {
    typealias Texts = (shown: String, exact: String)

    /// The name, which begins with "remote.".
    let name: String
    /// Parses a text, and sets the setting to its value.
    let assign: (String, inout CacheConfiguration.Remote) throws(Failure) -> Void
    /// Resets the setting to its default.
    let unset: (inout CacheConfiguration.Remote) -> Void
    /// Returns the value as shown to users, and in the exact form that `set` accepts; nil for the default.
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

    /// All settings, in the order of output.
    static var all: [RemoteSetting] {
        [
            RemoteSetting("servers", \.levels, servers) { same(RemoteSetting.text($0)) },
            RemoteSetting("mode", \.mode, mode) { same($0.rawValue) },
            RemoteSetting("limit", \.limit, Quantity.duration) { same(text($0)) },
            RemoteSetting("namespace", \.namespace, text, same),
            RemoteSetting("path", \.path, text, same),
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

    /// The section about these settings in `config --help`.
    static let help = """
          remote.servers      servers shared with other machines: URL[,URL…]; a value goes to one of them.
                              A semicolon precedes the servers to ask next: 'redis://a;http://b:8080/'
          remote.mode         off, read, or readWrite (the default)
          remote.limit        longest time that a get waits for the servers: 250ms by default
          remote.namespace    separates the keys of groups that share servers
          remote.path         path of a value on a server: {namespace}/{kind}/{digest} by default
          remote.format       action (the format of Bazel's remote cache, the default), or plain
          remote.minimumSize, remote.maximumSize    smallest and largest value to send: 0, 16M by default
          remote.tags         send only values with one of these tags: TAG[,TAG…]
          remote.authorityFile    certificate authorities (PEM) for https: and rediss: servers; by default
                              those in SSL_CERT_FILE, or the system's
          remote.certificateFile, remote.certificateKeyFile    client certificate (PEM) for servers that ask
                              for one, and its key, if that is in another file
          remote.credentials  file with lines `host = user:password` that only its owner can read
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

    /// Parses the URLs.
    ///
    /// Weights and other properties, which no command sets, are copied from config.json by
    /// ``RemoteSetting/kept(_:from:)``.
    private static func servers(_ text: String) throws(Failure) -> [[CacheConfiguration.Remote.Server]] {
        var levels: [[CacheConfiguration.Remote.Server]] = []
        for level in text.split(separator: ";") {
            var servers: [CacheConfiguration.Remote.Server] = []
            for word in level.split(separator: ",") { servers.append(.init(String(word))) }
            if !servers.isEmpty { levels.append(servers) }
        }
        if levels.isEmpty { throw .usage("there is no server: give URL[,URL…], or use `config unset`") }
        return levels
    }

    private static func mode(_ text: String) throws(Failure) -> CacheConfiguration.Remote.Mode {
        if let mode = CacheConfiguration.Remote.Mode(rawValue: text) { return mode }
        throw .usage("unknown mode '\(text)': give off, read or readWrite")
    }

    private static func format(_ text: String) throws(Failure) -> CacheConfiguration.Remote.Format {
        if let format = CacheConfiguration.Remote.Format(rawValue: text) { return format }
        throw .usage("unknown format '\(text)': give action or plain")
    }

    private static func size(_ text: String) throws(Failure) -> Int64 {
        try Quantity.size(text).bytes
    }

    private static func tags(_ text: String) throws(Failure) -> [String] {
        let tags = text.split(separator: ",").map(String.init)
        if tags.isEmpty { throw .usage("there is no tag: give TAG[,TAG…], or use `config unset`") }
        return tags
    }

    private static func text(_ text: String) throws(Failure) -> String {
        if text.isEmpty { throw .usage("the value is empty: use `config unset` to restore the default") }
        return text
    }

    private static func file(_ text: String) throws(Failure) -> String? {
        if text.hasPrefix("/") { return text }
        throw .usage("'\(text)' is a relative path: give an absolute one")
    }
}

extension RemoteSetting {
    /// Executes `config` for a setting whose name begins with "remote.".
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
            // Parsed first, so that no cache is created for an invalid value.
            var probe = CacheConfiguration.Remote(levels: [])
            probe.maximumSize = .max
            try setting.parse(text, &probe)
            try check(probe)
            let directory = try arguments.openCache().directory
            let before = try directory.uncheckedRemoteConfiguration()
            var remote = before ?? CacheConfiguration.Remote(levels: [])
            try setting.parse(text, &remote)
            if let before { remote.levels = kept(remote.levels, from: before.levels) }
            // If the existing settings are inconsistent, they are not checked, so that they can be corrected one at a
            // time.
            if isSound(before) { try check(remote) }
            try directory.setUncheckedRemoteConfiguration(remote)
            try arguments.print("", json: remote)
        default:
            let directory = try arguments.requireCache().directory
            guard var remote = try directory.uncheckedRemoteConfiguration() else { break }
            let wasSound = isSound(remote)
            setting.unset(&remote)
            // If all settings have their defaults, the whole section is removed from the file.
            let isUsual = remote == CacheConfiguration.Remote(levels: [])
            if wasSound { try check(remote) }
            try directory.setUncheckedRemoteConfiguration(isUsual ? nil : remote)
            try arguments.print("", json: remote)
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

    private static func isSound(_ remote: CacheConfiguration.Remote?) -> Bool {
        do throws(ConfigurationFault) {
            try remote?.check()
            return true
        } catch {
            return false
        }
    }

    private static func check(_ remote: CacheConfiguration.Remote) throws(Failure) {
        do throws(ConfigurationFault) {
            try remote.check()
        } catch {
            throw .usage("config: remote.\(error.key): \(error.words)")
        }
    }

    /// Returns `levels`, in which each server that already existed keeps its weight, kind and region.
    static func kept(
        _ levels: [[CacheConfiguration.Remote.Server]],
        from before: [[CacheConfiguration.Remote.Server]]
    ) -> [[CacheConfiguration.Remote.Server]] {
        let known = before.joined()
        return levels.map { $0.map { server in known.first { $0.url == server.url } ?? server } }
    }
}
