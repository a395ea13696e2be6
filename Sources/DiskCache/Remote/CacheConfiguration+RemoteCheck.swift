// SPDX-License-Identifier: Apache-2.0

import CacheStore

extension CacheConfiguration.Remote {
    /// The valid values of ``limit``, for all of which a server can delay a caller.
    private static let limits = Duration.milliseconds(1)...Duration.seconds(3600)

    /// Checks that a cache can be opened with this configuration; does not check the files that the configuration names.
    ///
    /// Called when a configuration is set and when a cache is opened with it, so that both reject the same
    /// configurations.
    package func check() throws(ConfigurationFault) {
        for server in levels.joined() {
            let address = try RemoteAddress(server.url)
            let isRedis = address.scheme.hasPrefix("redis")
            guard (server.kind == .redis) == isRedis || server.kind == nil else {
                throw Self.fault("servers", "\(address.name): kind and scheme do not go together")
            }
            guard server.kind != .s3 || !(address.path + path).contains(where: { "%?".contains($0) }) else {
                throw Self.fault("servers", "\(address.name): on S3 a path can't have % or ?")
            }
            guard server.weight >= 0, server.weight.isFinite else {
                throw Self.fault(
                    "servers",
                    "\(address.name): invalid weight \(server.weight): give 0 or more"
                )
            }
        }
        _ = try paths
        guard Self.limits.contains(limit) else {
            let range = "give 1ms to 1h, and remote.mode off for none"
            throw Self.fault("limit", "\(limit) is out of range: \(range)")
        }
        guard minimumSize >= 0, maximumSize >= minimumSize else {
            throw Self.fault("minimumSize", "it must not be above remote.maximumSize, nor below 0")
        }
    }

    /// The paths of objects on the servers; see ``path``.
    package var paths: RemotePaths {
        get throws(ConfigurationFault) {
            guard namespace.isEmpty || RemotePaths.isNamespace(namespace) else {
                let rule = "give at most 64 letters, digits, -, _ and ., and no . in front"
                throw Self.fault("namespace", "invalid namespace '\(namespace)': \(rule)")
            }
            var text = path
            if namespace.isEmpty {
                text.replace("{namespace}/", with: "")
                text.replace("{namespace}", with: "")
            }
            if text.first != "/" { text = "/" + text }
            // A path without `{kind}` is shared by contents and entries, whose digests differ.
            let content = text.replacing("{kind}", with: "cas")
            let entry = text.replacing("{kind}", with: "ac")
            if let paths = RemotePaths(content: content, entry: entry, namespace: namespace) { return paths }
            throw Self.fault("path", "invalid path '\(path)': write it like \(Self.defaultPath)")
        }
    }

    private static func fault(_ key: String, _ words: String) -> ConfigurationFault {
        ConfigurationFault(key: key, words: words)
    }
}
