// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import DiskCacheCommand
import DiskCacheHTTP
import FoundationEssentials
import Platform
import RemoteStore

/// The commands that reach other machines: downloads by `HTTPCache`, stores by `RemoteStore`.
final class NetworkCommands: Network {
    private struct State {
        var caches: [SharedCache] = []
        var downloads: [HTTPCache] = []
    }

    /// The time that a finished command grants to pending uploads, for which other machines may be waiting.
    private static let farewell: Duration = .seconds(1)
    /// The time limit for the background renewal of a response.
    private static let patience: Duration = .seconds(10)

    private let state = Locked(State())

    func open(_ path: String, _ configuration: CacheConfiguration) throws -> SharedCache {
        let cache: SharedCache
        do throws(CacheError) {
            cache = try SharedCache(at: path, configuration: configuration, remote: nil)
        } catch {
            // An invalid configuration of the stores must not prevent the use of the disk; `doctor` reports it.
            guard [.badConfiguration, .untrusted].contains(error.code) else { throw error }
            cache = try SharedCache(at: path, configuration: configuration)
        }
        state.withLock { $0.caches.append(cache) }
        return cache
    }

    func fetch(_ arguments: Arguments) throws -> ExitStatus {
        let plan = try FetchPlan(arguments)
        // Other machines are not queried: each response is valid on its own terms, which a server may have renewed.
        let cache = try arguments.openCache()
        let http = HTTPCache(cache, options: plan.options)
        state.withLock { $0.downloads.append(http) }
        return try FetchRun(plan, directory: cache.path) { (request) throws(FetchError) in
            try http.fetchAndWait(request)
        }.run()
    }

    func push(_ arguments: Arguments) throws -> ExitStatus {
        try Push.run(arguments) { limit in try stores(arguments, limit: limit) }
    }

    func pull(_ arguments: Arguments) throws -> ExitStatus {
        try Pull.run(arguments) { limit in try stores(arguments, limit: limit) }
    }

    func examine(_ remote: CacheConfiguration.Remote) throws(CacheError) -> [Finding] {
        try ServerChecks.findings(of: remote)
    }

    /// Opens the stores that the command's cache shares; throws if none are configured.
    ///
    /// - Parameter limit: The time to wait for a response, regardless of `config.json`.
    private func stores(_ arguments: Arguments, limit: Duration) throws -> SharedStores {
        // Only an existing cache is opened; none is created.
        let cache = try arguments.requireCache()
        guard var remote = try cache.directory.remoteConfiguration(), remote.isActive else {
            let advice = "name one with `diskcache config set remote.servers URL`"
            let problem = "config.json in \(cache.path) names no remote store"
            throw Failure(.configuration, "\(arguments.command): \(problem): \(advice)")
        }
        remote.limit = limit
        let stores = try SharedStores(cache.path, arguments.configuration(), remote)
        state.withLock { $0.caches.append(stores.cache) }
        return stores
    }

    func finish() {
        let ended = state.withLock { state in
            let ended = state
            state = State()
            return ended
        }
        settle(ended.downloads)
        let deadline = Deadline(after: Self.farewell)
        for cache in ended.caches { _ = cache.close(deadline: deadline.rest) }
    }

    /// Waits for background renewals.
    private func settle(_ downloads: [HTTPCache]) {
        // If no thread can be created, a new task never runs.
        let downloads = downloads.filter(\.isRenewing)
        if downloads.isEmpty { return }
        let isSettled = Monitored(false)
        Task.detached {
            for http in downloads { await http.settle() }
            isSettled.withLock { $0 = true }
            isSettled.wakeAll()
        }
        _ = isSettled.wait(until: .now + Self.patience) { $0 ? true : nil }
    }
}

/// A point in time, and the time left until then.
private struct Deadline {
    private let moment: ContinuousClock.Instant

    init(after time: Duration) {
        moment = .now + time
    }

    var rest: Duration { max(.zero, moment - .now) }
}
