// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The checks of the remote stores.
enum RemoteChecks {
    /// Returns the findings; empty if `config.json` names no servers.
    static func findings(of cache: SharedCache, _ arguments: Arguments) throws -> [Finding] {
        let remote: CacheConfiguration.Remote?
        do throws(CacheError) {
            remote = try cache.directory.remoteConfiguration()
        } catch {
            return [.risk("remote", error.message, "correct it with `diskcache config`")]
        }
        guard let remote else {
            // With --remote, the user expects an answer even if there are no servers.
            return arguments.has("remote") ? [.fine("remote", "config.json names no servers")] : []
        }
        guard arguments.has("remote"), let network = arguments.network, remote.isActive else {
            return [configured(remote, isReachable: arguments.network != nil || isInstalled)]
        }
        return try [configured(remote, isReachable: true)] + network.examine(remote)
    }

    /// Whether `diskcache-net`, which queries the servers, is installed.
    private static var isInstalled: Bool { NetworkProgram.isThere }

    /// Returns the finding about the servers' configuration, without querying them.
    static func configured(_ remote: CacheConfiguration.Remote, isReachable: Bool) -> Finding {
        let count = remote.levels.joined().count
        let state = "\(Quantity.count(count, "server")), mode \(remote.mode.rawValue)"
        if count == 0 || remote.mode == .off { return .fine("remote", "not in use: \(state)") }
        if isReachable { return .fine("remote", state) }
        return Finding(
            subject: "remote",
            level: .fallback,
            state: "\(state), but \(NetworkProgram.name) is not installed",
            advice: "commands don't use the servers: `make install` installs it"
        )
    }
}
