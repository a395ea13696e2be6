// SPDX-License-Identifier: Apache-2.0

public import DiskCache
public import FoundationEssentials
import Platform
import Transport

/// An HTTP cache in the directory: a response that was fetched once is there for all processes that use the directory, and the
/// server is asked again only when it is no longer fresh.
///
/// ```swift
/// let http = HTTPCache(try await SharedCache.open(at: "/var/cache/films"))
/// let response = try await http.fetch(FetchRequest("https://example.org/poster.jpg"))
/// ```
///
/// A private cache by RFC 9111: freshness, validation, Vary, RFC 5861's stale responses, RFC 8246. However
/// many threads and processes want one URL at once, one downloads it and the others get the stored response; if
/// it is killed, the next one resumes the download. A failure of the cache itself never fails a fetch. It
/// needs libcurl.so.4, which it opens at the first request; without it there is one error that says so, and
/// stored responses can still be used.
///
/// Fields of a request that may hold credentials (all but a few known ones, ``FetchRequest/fields``) are never stored,
/// `Set-Cookie` only encrypted with a key of the user's (``HTTPCacheOptions/keyFile``), and responses to other
/// credentials are never given out.
public final class HTTPCache: Sendable {
    let shelf: Shelf
    let options: HTTPCacheOptions
    let transport: Transport
    let gate: HostGate
    let security: TransportSecurity
    /// The renewals in the background, by URL.
    private let refreshes = Locked<[String: Task<Void, Never>]>([:])

    /// - Parameters:
    ///   - cache: the cache that stores the responses. Their keys begin with `http GET` and are in a space of their own: a value
    ///     that is put with such a key is another entry.
    ///   - options: the options for all requests.
    public init(_ cache: SharedCache, options: HTTPCacheOptions = HTTPCacheOptions()) {
        self.options = options
        shelf = Shelf(cache: cache, options: options)
        transport = Transport(mostTransfers: max(1, options.requests))
        gate = HostGate(limit: options.requestsPerHost)
        security = TransportSecurity(
            authorityFile: options.authorityFile,
            certificateFile: options.certificateFile,
            keyFile: options.certificateKeyFile
        )
    }

    /// The response to `request`, from the cache or from its server.
    ///
    /// No thread of Swift's pool is blocked. The body goes through a file of the cache's directory, whatever
    /// its size: only that of ``FetchRequest/Output/memory`` takes memory.
    ///
    /// - Throws: ``FetchError``; `CancellationError` if the task was cancelled.
    public func fetch(_ request: FetchRequest) async throws -> FetchResponse {
        let watched = Locked<String?>.Box(nil)
        let watch = watch(request, watched)
        do {
            let served = try await follow(request, watched)
            let response = try await blocking { () throws(FetchError) in
                try served.delivered(to: request.output)
            }
            watch?.cancel()
            await watch?.value
            request.progress?(FetchProgress(received: response.length, total: response.length))
            return response
        } catch {
            watch?.cancel()
            if error is FetchError || error is CancellationError { throw error }
            throw FetchError(.other, "\(error)")
        }
    }

    /// The same for threads that may block.
    ///
    /// - Throws: also ``FetchError/Code/other`` where the process can't have the threads that it takes.
    @available(*, noasync, message: "it blocks the thread: use `fetch`")
    public func fetchAndWait(_ request: FetchRequest) throws(FetchError) -> FetchResponse {
        guard
            Self.hasThreads.withLock({ known in
                known = known || DetachedThread.areAvailable(Self.threadCount)
                return known
            })
        else {
            let reason = "there may be no more threads: raise the limit of processes (ulimit -u, pids.max)"
            throw FetchError(.other, reason)
        }
        let outcome = Monitored<Result<FetchResponse, FetchError>?>(nil)
        Task.detached { [self] in
            let result = await result(of: request)
            outcome.withLock { $0 = result }
            outcome.wakeAll()
        }
        let ended = outcome.wait(for: { $0 })
        guard let ended else { throw FetchError(.other, "the fetch has not ended") }
        return try ended.get()
    }

    /// Whether it is known that there are enough.
    private static let hasThreads = Locked(false)
    /// Those of Swift's pool, which looks after timers, too; one that transfers, one that resolves names, and those that
    /// read and write the cache.
    private static let threadCount = 6

    private func result(of request: FetchRequest) async -> Result<FetchResponse, FetchError> {
        do {
            return .success(try await fetch(request))
        } catch {
            return .failure(error as? FetchError ?? FetchError(.other, "\(error)"))
        }
    }

    /// The body of the response, in pieces of 256 KiB; it is fetched when the first is asked for.
    ///
    /// All of it is there and checked before the first piece is given out, and takes memory for one piece. It
    /// throws what ``fetch(_:)`` throws, and ``FetchError/Code/unsuccessful`` for a status that is not a 2xx.
    /// The request's output is not looked at.
    public func body(of request: FetchRequest) -> some AsyncSequence<Data, any Error> & Sendable {
        FetchedChunks(http: self, request: request)
    }

    /// Waits until nothing is renewed in the background any more.
    public func settle() async {
        for task in refreshes.withLock({ Array($0.values) }) { await task.value }
    }

    /// Whether anything is renewed in the background.
    package var isRenewing: Bool { refreshes.withLock { !$0.isEmpty } }

    // MARK: For the extensions

    /// Runs `body` on a thread of the library.
    func blocking<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await shelf.cache.blocking { (_: SharedCache) throws(Failure) in try body() }
    }

    /// The response at the end of the redirects.
    func follow(_ request: FetchRequest, _ watched: Locked<String?>.Box) async throws -> Served {
        let limits = try FetchLimits(request, options)
        var asked = try HTTPRequest(request)
        var redirects = 0
        while true {
            let seal = await shelf.seal(for: asked)
            let fetch = Fetch(
                http: self,
                request: request,
                asked: asked,
                limits: limits,
                seal: seal,
                watched: watched
            )
            let served = try await fetch.run()
            guard request.mostRedirects > 0, let next = try served.redirect(of: asked) else { return served }
            redirects += 1
            guard redirects <= request.mostRedirects else {
                let place = next.url.place
                throw FetchError(.tooManyRedirects, "\(place): more than \(request.mostRedirects) redirects")
            }
            asked = next
        }
    }

    /// Renews what `fetch` has answered with, unless that is being done.
    func refresh(_ fetch: Fetch) {
        let name = fetch.asked.url.text
        refreshes.withLock { tasks in
            guard tasks[name] == nil else { return }
            tasks[name] = Task.detached { [self] in
                do {
                    _ = try await fetch.renewing().run()
                } catch {
                    // Nobody waits for it, and the next one who finds it stale tries again.
                }
                refreshes.withLock { $0[name] = nil }
            }
        }
    }

    /// Tells the caller how far the download is that is under way, until it is cancelled.
    private func watch(_ request: FetchRequest, _ watched: Locked<String?>.Box) -> Task<Void, Never>? {
        guard let progress = request.progress else { return nil }
        return Task { [self] in
            // Ends by being cancelled, which is all that sleeping can fail by.
            while (try? await Task.sleep(for: .milliseconds(100))) != nil {
                guard let key = watched.value.withLock({ $0 }) else { continue }
                guard let state = await state(of: key) else { continue }
                if !Task.isCancelled { progress(state) }
            }
        }
    }

    private func state(of key: String) async -> FetchProgress? {
        let cache = shelf.cache
        return await blocking { () throws(Never) -> FetchProgress? in
            do throws(CacheError) {
                guard let state = try cache.partialState(forKey: key) else { return nil }
                let head = state.note.flatMap { StoredHead(String(decoding: $0, as: UTF8.self)) }
                let process = try cache.processComputing(key)
                return FetchProgress(
                    received: state.length,
                    total: head?.length.map { Int64($0) },
                    joinedProcess: process == CurrentProcess.identifier ? nil : process
                )
            } catch {
                // It is for show: the next look may tell.
                return nil
            }
        }
    }
}

extension Fetch {
    /// The same in the background: nobody takes the body, and what is stale is not answered with.
    fileprivate func renewing() -> Fetch {
        var request = request
        request.progress = nil
        request.output = .file("")
        request.mode = .standard
        return Fetch(
            http: http,
            request: request,
            asked: asked,
            limits: limits.renewing(),
            seal: seal,
            watched: Locked<String?>.Box(nil)
        )
    }
}
