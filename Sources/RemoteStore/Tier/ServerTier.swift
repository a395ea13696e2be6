// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import DiskCache
import FoundationEssentials
import Platform
import Transport

/// The remote tier: servers in levels.
///
/// A server gets requests only as its breaker allows. Changes are sent in the background.
package final class ServerTier: RemoteTier {
    private let configuration: CacheConfiguration.Remote
    private let levels: [RemoteLevel]
    private let host: RemoteContext
    private let view = OutboxView()
    let sender: OutboxSender

    /// Creates the tier for a configuration.
    ///
    /// - Throws: ``CacheError/Code/badConfiguration``; ``CacheError/Code/untrusted`` for the file with the credentials.
    ///
    /// - Parameter isConfiguredInDirectory: Whether the configuration is the directory's, and not this process's own.
    package convenience init(
        _ configuration: CacheConfiguration.Remote,
        _ host: RemoteContext,
        isConfiguredInDirectory: Bool = false
    ) throws(CacheError) {
        let credentials = try RemoteCredentials(from: configuration.credentials)
        let transport = Transport()
        var terms = CircuitBreaker.Terms()
        terms.seed = OutboxRecord.freshNumber()
        var levels: [RemoteLevel] = []
        for servers in configuration.levels {
            var level: [RemoteServer] = []
            for server in servers {
                level.append(try RemoteServer(server, configuration, credentials, over: transport, terms))
            }
            levels.append(RemoteLevel(level, weights: servers.map(\.weight)))
        }
        self.init(levels, configuration, host, isConfiguredInDirectory: isConfiguredInDirectory)
    }

    /// Creates the tier with existing servers.
    init(
        _ levels: [RemoteLevel],
        _ configuration: CacheConfiguration.Remote,
        _ host: RemoteContext,
        isConfiguredInDirectory: Bool = false
    ) {
        self.levels = levels
        self.configuration = configuration
        self.host = host
        sender = OutboxSender(
            levels,
            configuration,
            host,
            view,
            isConfiguredInDirectory: isConfiguredInDirectory
        )
        sender.begin()
    }

    package var limit: Duration { configuration.limit }

    package func close(until deadline: ContinuousClock.Instant) {
        sender.close(until: deadline)
    }

    package var activity: CacheActivity.Remote {
        var activity = CacheActivity.Remote()
        let control = host.store().control
        activity.servers = levels.flatMap(\.servers).map { server in
            var state = CacheActivity.Remote.Server(name: server.name, breaker: server.phase(in: control))
            let latency = server.latency.withLock { $0 }
            (state.answers, state.latency) = (latency.count, CacheActivity.Remote.Latency(latency))
            return state
        }
        // If the outbox can't be read, the report contains the numbers of the last read.
        sender.follow(host.store())
        activity.waiting = view.count
        return activity
    }

    // MARK: Lookup

    package func isWorthAsking(_ key: Digest) -> Bool {
        let store = host.store()
        return store.directory.isWritable
            && levels.contains { $0.server(for: key)?.mayBeAsked(in: store.control) ?? false }
    }

    package func look(_ key: Digest, until deadline: ContinuousClock.Instant) -> RemoteValue? {
        let store = host.store()
        var missing: [Int] = []
        for (index, level) in levels.enumerated() {
            let rest = deadline - ContinuousClock.now
            // With less time, a good server would seem to be too slow.
            guard rest > configuration.limit / 8 else { break }
            guard let server = level.server(for: key) else { continue }
            // If a server does not answer, the next level still has time.
            let end = ContinuousClock.now + rest / (levels.count - index)
            do throws(RemoteFailure) {
                let parcel = try server.request(in: store) { () throws(RemoteFailure) in
                    try server.client.get(key, until: end)
                }
                missing.append(index)
                if let parcel, let value = try check(parcel, key, server, store, missing.dropLast()) {
                    return value
                }
            } catch {
                if error.kind == .wrong { reject(error, key, server, store) }
                // Another machine may share longer values: for this one it is a miss.
                if error.kind == .tooLong { missing.append(index) }
            }
        }
        store.counters.add(missing.isEmpty ? .remoteSkipped : .remoteMiss)
        return nil
    }

    /// Verifies a fetched entry, and returns its value.
    ///
    /// Returns nil for a removal, which this machine takes, and if the value must not be used: it has expired, is too long
    /// or too far in the future. Whether it is too old is decided when it is stored.
    ///
    /// - Throws: ``RemoteFailure`` if the bytes do not match their digest, or the record belongs to another key.
    private func check(
        _ parcel: RemoteEntry,
        _ key: Digest,
        _ server: RemoteServer,
        _ store: Store,
        _ missing: ArraySlice<Int>
    ) throws(RemoteFailure) -> RemoteValue? {
        store.counters.add(.remoteBytesReceived, parcel.bytes.count)
        let content = Content(of: parcel.bytes.span)
        guard content.digest == parcel.digest else {
            throw RemoteFailure(.wrong, "the bytes do not match the digest")
        }
        // The checksum of a record includes the key's digest, so the record of another key is rejected.
        guard let record = Record(decoding: parcel.record, for: key), record.content == content else {
            throw RemoteFailure(.wrong, "the record does not belong to key and value")
        }
        let now = host.now()
        // Values from a clock that is further ahead are rejected: the next barrier would exclude all values for as long.
        guard record.created <= now.advanced(byNanoseconds: Self.furthestAhead) else { return nil }
        guard store.versions.isInTime(record.version), record.expires.map({ now < $0 }) ?? true else {
            return nil
        }
        if record.isNothing {
            take(removalOf: key, record.version, store)
            return nil
        }
        guard Int64(content.length) <= configuration.maximumSize else { return nil }
        return RemoteValue(
            bytes: parcel.bytes,
            content: content,
            record: record,
            missingLevels: Array(missing)
        )
    }

    private func take(removalOf key: Digest, _ version: ChangeVersion, _ store: Store) {
        do throws(CacheError) {
            try store.takeRemoval(version, of: key)
        } catch {
            // Older values of another level may be taken: this machine has not seen the removal.
            store.counters.add(.cacheFailure)
        }
    }

    package func adopted(_ value: RemoteValue, for key: Digest) {
        for level in value.missingLevels {
            sender.fill(OutboxSender.Fill(level: level, key: key, content: value.content.digest))
        }
    }

    /// How far another machine's clock may be ahead while its values are accepted: an hour, in nanoseconds.
    private static let furthestAhead: Int64 = 3_600_000_000_000

    private func reject(_ error: RemoteFailure, _ key: Digest, _ server: RemoteServer, _ store: Store) {
        store.counters.add(.remoteWrong)
        host.report(.remoteValueWrong(keyDigest: key, server: server.name, reason: error.message))
        sender.repair(OutboxSender.Repair(server: server, key: key))
    }
}

extension CacheActivity.Remote.Latency {
    /// Nil without answers.
    fileprivate init?(_ histogram: LatencyHistogram) {
        func span(_ share: Double) -> Duration { .microseconds(histogram.microseconds(atShare: share) ?? 0) }
        if histogram.count == 0 { return nil }
        self.init(median: span(0.5), percentile99: span(0.99), longest: span(1))
    }
}
