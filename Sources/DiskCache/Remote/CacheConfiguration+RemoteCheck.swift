// SPDX-License-Identifier: Apache-2.0

package import CacheStore

/// What is wrong with the servers that a configuration names.
package struct ConfigurationFault: Error {
    /// The key of config.json.
    package let key: String
    package let words: String

    package init(key: String, words: String) {
        (self.key, self.words) = (key, words)
    }

    /// As users of the library get it.
    package var error: CacheError {
        let reason = "share values between machines: remote.\(key): \(words)"
        return CacheError(.badConfiguration, "\(reason): correct the configuration")
    }
}

extension CacheConfiguration.Remote {
    /// What a limit may be: a server can hold up a caller for all of it.
    private static let limits = Duration.milliseconds(1)...Duration.seconds(3600)

    /// Makes sure that a cache can be opened with these servers, as far as that can be told without the files that are
    /// named.
    ///
    /// What sets a configuration and what opens a cache with it ask this, so that both refuse the same.
    package func check() throws(ConfigurationFault) {
        for server in levels.joined() {
            let address = try RemoteAddress(server.url)
            let isRedis = address.scheme.hasPrefix("redis")
            guard (server.kind == .redis) == isRedis || server.kind == nil else {
                throw Self.fault("servers", "\(address.name): kind and scheme do not go together")
            }
            guard server.weight >= 0, server.weight.isFinite else {
                throw Self.fault("servers", "\(address.name): \(server.weight) is no weight: give 1, or 2.5")
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

    /// Where servers have what; see ``path``.
    package var paths: RemotePaths {
        get throws(ConfigurationFault) {
            guard namespace.isEmpty || RemotePaths.isNamespace(namespace) else {
                let rule = "give at most 64 letters, digits, -, _ and ., and no . in front"
                throw Self.fault("namespace", "'\(namespace)' is no namespace: \(rule)")
            }
            var text = path
            if namespace.isEmpty {
                text.replace("{namespace}/", with: "")
                text.replace("{namespace}", with: "")
            }
            if text.first != "/" { text = "/" + text }
            // A path without the kind is one for both, which have different digests.
            let content = text.replacing("{kind}", with: "cas")
            let entry = text.replacing("{kind}", with: "ac")
            if let paths = RemotePaths(content: content, entry: entry, namespace: namespace) { return paths }
            throw Self.fault("path", "'\(path)' is no path: write it like \(Self.defaultPath)")
        }
    }

    private static func fault(_ key: String, _ words: String) -> ConfigurationFault {
        ConfigurationFault(key: key, words: words)
    }
}
