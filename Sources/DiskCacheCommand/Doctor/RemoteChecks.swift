// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The checks of the stores shared with other machines.
enum RemoteChecks {
    /// The largest acceptable clock skew; beyond it values expire too early or too late, and signed requests are refused.
    private static let tolerableSkew: Duration = .seconds(2)

    /// The time to wait for a server.
    private static let patience: Duration = .seconds(5)

    /// Returns the findings; empty if `config.json` names no servers.
    static func findings(of cache: SharedCache, _ arguments: Arguments) throws -> [Finding] {
        let remote: CacheConfiguration.Remote?
        do throws(CacheError) {
            remote = try cache.directory.remoteConfiguration()
        } catch {
            return [fault("remote", error.message, "correct it with `diskcache config`")]
        }
        guard let remote else {
            // With --remote, the missing servers are reported.
            return arguments.has("remote") ? [fine("remote", "config.json names no servers")] : []
        }
        guard arguments.has("remote"), let network = arguments.network else {
            return [configured(remote, isReachable: isInstalled)]
        }
        let found = try network.stores(of: cache.path, arguments.configuration(), limit: patience)
        guard let stores = found else { return [configured(remote, isReachable: true)] }
        let writes = remote.mode == .readWrite
        return try [configured(remote, isReachable: true)]
            + stores.examine().flatMap { findings($0, limit: remote.limit, writes: writes) }
    }

    /// Whether the program that queries them is installed.
    private static var isInstalled: Bool { NetworkProgram.isThere }

    /// Returns the finding about the servers' configuration, without querying them.
    static func configured(_ remote: CacheConfiguration.Remote, isReachable: Bool) -> Finding {
        let count = remote.levels.joined().count
        let state = "\(Quantity.count(count, "server")), mode \(remote.mode.rawValue)"
        if count == 0 || remote.mode == .off { return fine("remote", "not in use: \(state)") }
        if isReachable { return fine("remote", state) }
        return Finding(
            subject: "remote",
            level: .fallback,
            state: "\(state), but \(NetworkProgram.name) is not installed",
            advice: "commands neither ask nor tell other machines: `make install` installs it"
        )
    }

    /// Returns the findings for one server.
    ///
    /// - Parameters:
    ///   - limit: The maximum delay of a get because of it.
    ///   - writes: Whether this machine must be able to write there.
    static func findings(_ found: RemoteExamination, limit: Duration, writes: Bool) -> [Finding] {
        let name = found.server
        if let obstacle = found.obstacle {
            let advice = "start it, correct remote.servers, or look at what lies between"
            return [fault(name, "can't be reached: \(obstacle)", advice)]
        }
        var findings: [Finding] = []
        if let span = found.roundTrip {
            let state = "answers in \(CacheActivity.Remote.text(span))"
            let isSlow = span * 2 > limit
            let present = CacheActivity.Remote.text(limit)
            let advice = "raise remote.limit (\(present)), or use a server that is nearer"
            findings.append(isSlow ? fault(name, state, advice) : fine(name, state))
        }
        if writes {
            let advice = "let this machine write there, or set remote.mode read"
            findings += finding(name, found.writing, "stores", advice)
        }
        findings += finding(name, found.reading, "gives back what was stored", "look at what lies between")
        let advice = "let this machine delete there, or clean it up elsewhere"
        findings += finding(name, found.removing, "removes", advice)
        if let skew = found.clockSkew {
            let size = max(skew, .zero - skew)
            let relation = "\(Quantity.text(size)) \(skew < .zero ? "behind" : "ahead of") this machine's"
            let isRight = size <= tolerableSkew
            findings.append(
                isRight
                    ? fine(name, "its clock agrees with this machine's")
                    : fault(name, "its clock is \(relation)", "synchronize the clocks: values expire by them")
            )
        }
        return findings
    }

    private static func finding(
        _ name: String,
        _ outcome: RemoteExamination.Outcome?,
        _ verb: String,
        _ advice: String
    ) -> [Finding] {
        switch outcome {
        case nil: []
        case .done: [fine(name, verb)]
        case .failed(let reason): [fault(name, "does not do it (\(verb)): \(reason)", advice)]
        }
    }

    private static func fine(_ subject: String, _ state: String) -> Finding {
        Finding(subject: subject, level: .fine, state: state, advice: nil)
    }

    private static func fault(_ subject: String, _ state: String, _ advice: String) -> Finding {
        Finding(subject: subject, level: .risk, state: state, advice: advice)
    }
}
