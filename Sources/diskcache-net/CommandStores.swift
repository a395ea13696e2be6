// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import DiskCacheCommand
import DiskCacheHTTP
import FoundationEssentials
import Platform
import RemoteStore
import Transport

/// The remote stores, adapted to the commands.
final class CommandStores: Stores {
    let cache: SharedCache
    private let remote: CacheConfiguration.Remote
    private let tier: ServerTier
    private let backlog = OutboxBacklog()

    /// Opens the stores.
    ///
    /// - Parameter remote: An active configuration, with the limit for each call.
    init(
        _ path: String,
        _ configuration: CacheConfiguration,
        _ remote: CacheConfiguration.Remote
    ) throws(CacheError) {
        var made: ServerTier?
        cache = try SharedCache(at: path, configuration: configuration) {
            (host: RemoteHost) throws(CacheError) -> (any RemoteTier)? in
            let tier = try ServerTier(remote, host)
            made = tier
            return tier
        }
        guard let made else {
            throw CacheError(.closed, "share values between machines: there is no tier: try again")
        }
        tier = made
        self.remote = remote
    }

    var isWritable: Bool { remote.mode == .readWrite }

    func look(_ key: String) -> Data? {
        tier.look(Digest(ofKey: key), until: .now + remote.limit)?.bytes
    }

    func backlogCount() throws(CacheError) -> Int {
        try cache.withStore { (store, _) throws(CacheError) in try backlog.count(in: store) }
    }

    func examine() throws(CacheError) -> [RemoteExamination] {
        try ServerProbe.examine(remote).map { report in
            var found = RemoteExamination(report.name)
            found.obstacle = report.obstacle
            found.roundTrip = report.roundTrip
            found.writing = report.storing.map(Self.outcome)
            found.reading = report.reading.map(Self.outcome)
            found.removing = report.removing.map(Self.outcome)
            let isHTTP = report.name.hasPrefix("http")
            if report.obstacle == nil, isHTTP { found.clockSkew = skew(of: report.name) }
            return found
        }
    }

    private static func outcome(_ step: ServerProbe.Step) -> RemoteExamination.Outcome {
        switch step {
        case .done: .done
        case .failed(let reason): .failed(reason)
        }
    }

    /// Returns the lead of a server's clock, to a second, from the field Date of any response; nil if it has none.
    private func skew(of url: String) -> Duration? {
        var request = TransportRequest(url, method: "HEAD")
        request.timeLimit = remote.limit
        request.security = remote.security
        request.proxy = .none
        do throws(TransportError) {
            let response = try Transport(mostTransfers: 1).performAndWait(request)
            let now = Date.now.timeIntervalSince1970
            let present = HTTPDate(seconds: Int(now))
            guard let text = response.values("Date").first, let date = HTTPDate(text, now: present) else {
                return nil
            }
            // The time is truncated to a second, so half a second is added as the average.
            return .seconds(Double(date.seconds) + 0.5 - now)
        } catch {
            return nil
        }
    }
}
