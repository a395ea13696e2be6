// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform
import Transport

/// The state that all requests of an HTTP cache share.
struct FetchContext: Sendable {
    let responses: ResponseStore
    let options: HTTPCacheOptions
    let transport: Transport
    let security: TransportSecurity

    init(_ cache: SharedCache, _ options: HTTPCacheOptions) {
        self.options = options
        responses = ResponseStore(cache: cache, options: options)
        transport = Transport(
            mostTransfers: min(max(1, options.requests), Self.mostTransfers),
            mostPerServer: min(max(1, options.requestsPerHost), Self.mostTransfers)
        )
        security = TransportSecurity(
            authorityFile: options.authorityFile,
            certificateFile: options.certificateFile,
            keyFile: options.certificateKeyFile
        )
    }

    /// The maximum number of transfers at once, whatever the options say: each takes a thread.
    private static let mostTransfers = 4096

    /// Runs `body` on a thread of the cache that may block.
    func blocking<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await responses.cache.blocking { (_: SharedCache) throws(Failure) in try body() }
    }

    /// Throws if no more threads can be created: without them, a thread that waits for the result could wait forever.
    func requireThreads() throws(FetchError) {
        guard WaitingThread.isCurrent else { return }
        let areThere = Self.hasThreads.withLock { known in
            known = known || DetachedThread.areAvailable(Self.threadCount)
            return known
        }
        if areThere { return }
        let reason = "a thread can't be created: raise the limit of processes (ulimit -u, pids.max)"
        throw FetchError(.other, reason)
    }

    /// Whether enough threads were available at an earlier check.
    private static let hasThreads = Locked(false)
    /// The number of threads needed: the threads of Swift's pool, which also runs timers, and one that resolves names.
    private static let threadCount = 4
}
