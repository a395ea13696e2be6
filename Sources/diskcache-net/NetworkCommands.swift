// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import DiskCacheCommand
import DiskCacheHTTP
import FoundationEssentials
import Platform
import RemoteStore

/// The access to other machines: downloads with `HTTPCache`, remote stores with `RemoteStore`.
final class NetworkCommands: Network {
    private struct State {
        var caches: [SharedCache] = []
        var downloads: [HTTPCache] = []
    }

    /// How long a finished command waits for pending uploads, which other machines may need.
    private static let farewell: Duration = .seconds(1)
    /// How long a finished command waits for the background revalidation of responses.
    private static let patience: Duration = .seconds(10)

    private let state = Locked(State())

    func open(_ path: String, _ configuration: CacheConfiguration) throws -> SharedCache {
        let cache: SharedCache
        do throws(CacheError) {
            cache = try SharedCache(at: path, configuration: configuration, remote: nil)
        } catch {
            // An invalid configuration of the remote stores must not prevent the use of the disk; `doctor` reports it.
            guard [.badConfiguration, .untrusted].contains(error.code) else { throw error }
            cache = try SharedCache(at: path, configuration: configuration)
        }
        state.withLock { $0.caches.append(cache) }
        return cache
    }

    func fetch(_ arguments: Arguments) throws -> ExitStatus {
        let plan = try FetchPlan(arguments)
        // Responses are not shared through remote stores: each machine can query the origin server.
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

    /// Opens the remote stores of the command's cache; throws if none are configured.
    ///
    /// - Parameter limit: The time limit for a response, which overrides the one in `config.json`.
    private func stores(_ arguments: Arguments, limit: Duration) throws -> SharedStores {
        // The command must not create a cache.
        let cache = try arguments.requireCache()
        guard var remote = try cache.directory.remoteConfiguration(), remote.isActive else {
            let advice =
                "use `diskcache config set remote.servers URL`, and remote.mode read or readWrite"
            let problem = "config.json in \(cache.path) names no remote store, or remote.mode is off"
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

    /// Waits for background revalidations.
    private func settle(_ downloads: [HTTPCache]) {
        // If there is nothing to wait for, no task is needed; without threads, a new task would never run.
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

/// A point in time, which tells how much time is left.
private struct Deadline {
    private let moment: ContinuousClock.Instant

    init(after time: Duration) {
        moment = .now + time
    }

    var rest: Duration { max(.zero, moment - .now) }
}
