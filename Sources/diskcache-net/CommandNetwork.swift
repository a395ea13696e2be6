// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import DiskCacheCommand
import DiskCacheHTTP
import FoundationEssentials
import Platform
import RemoteStore

/// The access to other machines for the commands: downloads by `HTTPCache`, stores by `RemoteStore`.
final class CommandNetwork: Network {
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

    func stores(
        of path: String,
        _ configuration: CacheConfiguration,
        limit: Duration
    ) throws -> (any Stores)? {
        let plain = try SharedCache(at: path, configuration: configuration)
        guard var remote = try plain.directory.remoteConfiguration(), remote.isActive else { return nil }
        remote.limit = limit
        let stores = try CommandStores(path, configuration, remote)
        state.withLock { $0.caches.append(stores.cache) }
        return stores
    }

    func downloads(in cache: SharedCache, _ security: FetchSecurity) -> any Downloads {
        var options = HTTPCacheOptions()
        options.authorityFile = security.authorityFile
        options.certificateFile = security.certificateFile
        options.certificateKeyFile = security.certificateKeyFile
        let http = HTTPCache(cache, options: options)
        state.withLock { $0.downloads.append(http) }
        return CommandDownloads(http: http)
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
