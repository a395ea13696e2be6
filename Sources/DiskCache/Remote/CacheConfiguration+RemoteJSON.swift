// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import FoundationEssentials

/// The object under the key `remote` of `config.json`.
///
/// Every key may be missing; unknown keys are ignored. Defaults are not written, except the mode.
extension CacheConfiguration.Remote: Codable {
    /// Reads the configuration without checking it.
    public init(from decoder: any Decoder) throws {
        self.init(levels: [])
        let container = try decoder.container(keyedBy: Key.self)
        for field in Self.fields { try field.read(container, &self) }
    }

    /// Writes the keys of `config.json`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        for field in Self.fields { try field.write(self, &container) }
    }

    private static let fields = [
        Field("servers", \.onlyLevel), Field("levels", \.severalLevels),
        Field("mode", \.mode, isAlwaysWritten: true), Field("path", \.path), Field("format", \.format),
        Field("namespace", \.namespace), Field("limit", \.limitText),
        Field("minimumSize", \.minimumSize), Field("maximumSize", \.maximumSize), Field("tags", \.tags),
        Field("authorityFile", \.authorityFile), Field("certificateFile", \.certificateFile),
        Field("certificateKeyFile", \.certificateKeyFile), Field("credentials", \.credentials),
    ]

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }

        init?(intValue: Int) { nil }
    }

    /// One key of the object.
    private struct Field: Sendable {
        let read: @Sendable (KeyedDecodingContainer<Key>, inout CacheConfiguration.Remote) throws -> Void
        let write: @Sendable (CacheConfiguration.Remote, inout KeyedEncodingContainer<Key>) throws -> Void

        init<Value: Codable & Equatable & Sendable>(
            _ name: String,
            _ path: any WritableKeyPath<CacheConfiguration.Remote, Value> & Sendable,
            isAlwaysWritten: Bool = false
        ) {
            let key = Key(stringValue: name)
            let usual = CacheConfiguration.Remote(levels: [])[keyPath: path]
            read = { container, remote in
                guard let value = try container.decodeIfPresent(Value.self, forKey: key) else { return }
                remote[keyPath: path] = value
            }
            write = { remote, container in
                let value = remote[keyPath: path]
                if isAlwaysWritten || value != usual { try container.encode(value, forKey: key) }
            }
        }
    }

    // MARK: Values in another form

    /// The servers, if there is one level.
    private var onlyLevel: [Server]? {
        get { levels.count == 1 ? levels[0] : nil }
        set { severalLevels = newValue.map { [$0] } }
    }

    /// The levels, if there are several.
    private var severalLevels: [[Server]]? {
        get { levels.count > 1 ? levels : nil }
        set { levels = (newValue ?? []).filter { !$0.isEmpty } }
    }

    private var limitText: LimitText {
        get { LimitText(span: limit) }
        set { limit = newValue.span }
    }

    /// A duration as text, such as "250ms".
    private struct LimitText: Codable, Equatable {
        let span: Duration

        init(span: Duration) { self.span = span }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let span = CacheConfiguration.Remote.duration(text) else {
                let words = "invalid duration \(text): write it like 250ms"
                throw DecodingError.dataCorruptedError(in: container, debugDescription: words)
            }
            self.span = span
        }

        func encode(to encoder: any Encoder) throws {
            let milliseconds = span / .milliseconds(1)
            var container = encoder.singleValueContainer()
            try container.encode(Int64(exactly: milliseconds).map { "\($0)ms" } ?? "\(milliseconds)ms")
        }
    }

    /// Parses "250ms", "1.5s", "1m" or "1h"; returns nil for anything else.
    static func duration(_ text: String) -> Duration? {
        let units: [(String, Double)] = [("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3600)]
        for (unit, seconds) in units where text.hasSuffix(unit) {
            guard let number = Double(text.dropLast(unit.count)), number > 0, number < 1e9 else { return nil }
            return .seconds(number * seconds)
        }
        return nil
    }
}

extension CacheConfiguration.Remote.Mode: Codable {}
extension CacheConfiguration.Remote.Format: Codable {}
extension CacheConfiguration.Remote.Server.Kind: Codable {}

extension CacheConfiguration.Remote.Server: Codable {
    private enum Key: CodingKey {
        case url, weight, kind, region
    }

    /// Reads a server; only its URL is required.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        self.init(
            try container.decode(String.self, forKey: .url),
            weight: try container.decodeIfPresent(Double.self, forKey: .weight) ?? 1,
            kind: try container.decodeIfPresent(Kind.self, forKey: .kind),
            region: try container.decodeIfPresent(String.self, forKey: .region)
        )
    }

    /// Writes the server, without its weight if that is 1.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(url, forKey: .url)
        try container.encodeIfPresent(weight == 1 ? nil : weight, forKey: .weight)
        try container.encodeIfPresent(kind, forKey: .kind)
        try container.encodeIfPresent(region, forKey: .region)
    }
}

extension CacheConfiguration.Remote {
    /// Creates a configuration from the JSON of ``json``.
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

    /// Creates a configuration from JSON without checking it, so that an invalid one can be corrected.
    init(unchecked json: some Sequence<UInt8>) throws(CacheError) {
        do {
            self = try JSONDecoder().decode(Self.self, from: Data(json))
        } catch DecodingError.dataCorrupted(let context) {
            let key = context.codingPath.last?.stringValue
            throw Self.bad((key.map { "\($0): " } ?? "") + context.debugDescription)
        } catch {
            throw Self.bad("it is not an object with the keys of a remote")
        }
    }

    private static func bad(_ words: String) -> CacheError {
        let reason = "read the configuration of the remote: \(words)"
        return CacheError(.badConfiguration, "\(reason): correct it in config.json")
    }

    /// The JSON under the key `remote` of `config.json`.
    public var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only a NaN or infinite weight can't be encoded, and ``check()`` rejects it.
        return (try? encoder.encode(self)).map { [UInt8]($0) } ?? Array("{}".utf8)
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
            // Only here, and not when a cache is opened: other processes may send changes to servers of their own.
            let isSent = remote.map { $0.isActive && $0.mode == .readWrite } ?? false
            if !isSent, store.control.notesChanges { store.noteChanges(false) }
        }
    }
}
