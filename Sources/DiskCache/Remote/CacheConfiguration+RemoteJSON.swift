// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import FoundationEssentials

/// The object under the key `remote` of `config.json`.
///
/// Any key may be missing; unknown keys are ignored.
private struct RemoteDocument: Codable {
    struct Server: Codable {
        var url: String
        var weight: Double?
        var kind: String?
        var region: String?
    }

    var servers: [Server]?
    var levels: [[Server]]?
    var mode: String?
    var path: String?
    var format: String?
    var namespace: String?
    var limit: String?
    var minimumSize: Int64?
    var maximumSize: Int64?
    var tags: [String]?
    var authorityFile: String?
    var certificateFile: String?
    var certificateKeyFile: String?
    var credentials: String?
}

extension CacheConfiguration.Remote {
    /// Creates a configuration from JSON in the form that ``json`` returns.
    ///
    /// - Throws: ``CacheError/Code/badConfiguration``.
    public init(json: some Sequence<UInt8>) throws(CacheError) {
        try self.init(unchecked: json)
        do throws(ConfigurationFault) {
            try check()
        } catch {
            throw Self.bad("\(error.key): \(error.words)")
        }
    }

    /// Creates a configuration from JSON without checking it, so that an invalid configuration can be corrected.
    init(unchecked json: some Sequence<UInt8>) throws(CacheError) {
        let document: RemoteDocument
        do {
            document = try JSONDecoder().decode(RemoteDocument.self, from: Data(json))
        } catch {
            throw Self.bad("it is not an object with the keys of a remote")
        }
        let groups = document.levels ?? document.servers.map { [$0] } ?? []
        self.init(levels: [])
        for group in groups {
            var level: [Server] = []
            for server in group {
                let kind: Server.Kind? = try Self.choice(server.kind, "kind")
                let (weight, region) = (server.weight ?? 1, server.region)
                level.append(Server(server.url, weight: weight, kind: kind, region: region))
            }
            if !level.isEmpty { levels.append(level) }
        }
        mode = try Self.choice(document.mode, "mode") ?? mode
        format = try Self.choice(document.format, "format") ?? format
        path = document.path ?? path
        namespace = document.namespace ?? namespace
        minimumSize = document.minimumSize ?? minimumSize
        maximumSize = document.maximumSize ?? maximumSize
        tags = document.tags ?? tags
        authorityFile = document.authorityFile
        certificateFile = document.certificateFile
        certificateKeyFile = document.certificateKeyFile
        credentials = document.credentials
        if let text = document.limit {
            guard let span = Self.duration(text) else {
                throw Self.bad("limit: invalid duration \(text): write it like 250ms")
            }
            limit = span
        }
    }

    private static func choice<Choice: RawRepresentable<String>>(
        _ text: String?,
        _ key: String
    ) throws(CacheError) -> Choice? {
        guard let text else { return nil }
        guard let choice = Choice(rawValue: text) else { throw bad("\(key): there is no \(text)") }
        return choice
    }

    private static func bad(_ words: String) -> CacheError {
        let reason = "read the configuration of the remote: \(words)"
        return CacheError(.badConfiguration, "\(reason): correct it in config.json")
    }

    /// The JSON under the key `remote` of `config.json`.
    public var json: [UInt8] {
        var document = RemoteDocument()
        let groups = levels.map { level in
            level.map { server in
                RemoteDocument.Server(
                    url: server.url,
                    weight: server.weight == 1 ? nil : server.weight,
                    kind: server.kind?.rawValue,
                    region: server.region
                )
            }
        }
        if groups.count == 1 { document.servers = groups[0] } else { document.levels = groups }
        let usual = CacheConfiguration.Remote(levels: [])
        document.mode = mode.rawValue
        if path != usual.path { document.path = path }
        if format != usual.format { document.format = format.rawValue }
        if !namespace.isEmpty { document.namespace = namespace }
        if limit != usual.limit { document.limit = Self.text(limit) }
        if minimumSize != usual.minimumSize { document.minimumSize = minimumSize }
        if maximumSize != usual.maximumSize { document.maximumSize = maximumSize }
        if !tags.isEmpty { document.tags = tags }
        document.authorityFile = authorityFile
        document.certificateFile = certificateFile
        document.certificateKeyFile = certificateKeyFile
        document.credentials = credentials
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding fails only for a weight that is NaN or infinite, which ``check()`` rejects.
        return (try? encoder.encode(document)).map { [UInt8]($0) } ?? Array("{}".utf8)
    }

    // MARK: Times

    /// Parses "250ms", "1.5s", "1m" or "1h"; returns nil for anything else.
    static func duration(_ text: String) -> Duration? {
        let units: [(String, Double)] = [("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3600)]
        for (unit, seconds) in units where text.hasSuffix(unit) {
            guard let number = Double(text.dropLast(unit.count)), number > 0, number < 1e9 else { return nil }
            return .seconds(number * seconds)
        }
        return nil
    }

    private static func text(_ span: Duration) -> String {
        let milliseconds = span / .milliseconds(1)
        return Int64(exactly: milliseconds).map { "\($0)ms" } ?? "\(milliseconds)ms"
    }
}

extension CacheDirectory {
    /// Returns the remote configuration in the directory's `config.json`; nil if there is none.
    ///
    /// - Throws: ``CacheError/Code/badConfiguration``.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func remoteConfiguration() throws(CacheError) -> CacheConfiguration.Remote? {
        try remoteJSON().map { (json) throws(CacheError) in try CacheConfiguration.Remote(json: json) }
    }

    /// Returns the remote configuration without checking it, so that an invalid configuration can be corrected.
    package func uncheckedRemoteConfiguration() throws(CacheError) -> CacheConfiguration.Remote? {
        try remoteJSON().map { (json) throws(CacheError) in try CacheConfiguration.Remote(unchecked: json) }
    }

    private func remoteJSON() throws(CacheError) -> [UInt8]? {
        try withStore { (store, _) throws(CacheError) -> [UInt8]? in
            store.followConfiguration()
            if let failure = store.configurationFailure { throw failure }
            return store.configuration.remote
        }
    }

    /// Sets the remote configuration in `config.json`; caches that are opened from now on share values through its servers.
    ///
    /// - Parameter remote: the configuration; nil for none.
    /// - Throws: ``CacheError``, with the code `badConfiguration` if the configuration is invalid.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func setRemoteConfiguration(_ remote: CacheConfiguration.Remote?) throws(CacheError) {
        do throws(ConfigurationFault) {
            try remote?.check()
        } catch {
            throw error.error
        }
        try setUncheckedRemoteConfiguration(remote)
    }

    /// Sets the remote configuration without checking it, so that invalid settings can be corrected one by one.
    package func setUncheckedRemoteConfiguration(_ remote: CacheConfiguration.Remote?) throws(CacheError) {
        let json = remote?.json
        try withStore { (store, _) throws(CacheError) in
            try store.configure { (configuration) throws(CacheError) in
                _ = configuration.setRemote(json)
            }
        }
    }
}
