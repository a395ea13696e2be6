// SPDX-License-Identifier: Apache-2.0

public import DiskCache
public import FoundationEssentials
import Platform
import Transport

/// An HTTP cache for all processes that use a directory: each response is fetched once, and again only when it is no longer
/// fresh.
///
/// ```swift
/// let http = HTTPCache(try await SharedCache.open(at: "/var/cache/films"))
/// let response = try await http.fetch(FetchRequest("https://example.org/poster.jpg"))
/// ```
///
/// A private cache by RFC 9111 (freshness, validation, Vary), with stale responses by RFC 5861, and `immutable` responses
/// by RFC 8246. However many threads and processes request one URL at once, one caller downloads it and the others get the
/// stored response; if the downloading process is killed, another one resumes the download. A failure of the cache itself
/// never fails a fetch. Requests to servers need libcurl.so.4, which is loaded at the first request; without it, they fail
/// with ``FetchError/Code/libraryMissing``, and stored responses can still be used.
///
/// Request fields that may hold credentials (all but a few known ones, ``FetchRequest/fields``) and `Set-Cookie` are never
/// stored. A request never gets the response to a request with other credentials.
public final class HTTPCache: Sendable {
    let context: FetchContext
    /// The background revalidations, by URL.
    private let refreshes = Locked<[String: Task<Void, Never>]>([:])

    /// Creates an HTTP cache.
    ///
    /// - Parameters:
    ///   - cache: the cache that stores the responses. Their keys begin with `http GET` and are in a separate key space: a
    ///     value that is put under such a key is another entry.
    ///   - options: the options for all requests.
    public init(_ cache: SharedCache, options: HTTPCacheOptions = HTTPCacheOptions()) {
        context = FetchContext(cache, options)
    }

    /// Returns the response to `request`, from the cache or from its server.
    ///
    /// Blocks no thread of Swift's pool. The body is received into a file in the cache's directory, whatever its size: only
    /// ``FetchRequest/Output/memory`` takes memory for the whole body.
    ///
    /// - Throws: ``FetchError``; `CancellationError` if the task was cancelled.
    public func fetch(_ request: FetchRequest) async throws -> FetchResponse {
        let watched = Locked<String?>.Box(nil)
        let watch = watch(request, watched)
        do {
            let served = try await follow(request, watched)
            let response = try await context.blocking { () throws(FetchError) in
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

    /// Returns the response to `request`; blocks the calling thread.
    ///
    /// Returning a stored response needs no other thread, unless the request has a ``FetchRequest/progress``.
    ///
    /// - Throws: ``FetchError``, with ``FetchError/Code/other`` also if the process can't create the threads that a request
    ///   to a server needs.
    @available(*, noasync, message: "it blocks the thread: use `fetch`")
    public func fetchAndWait(_ request: FetchRequest) throws(FetchError) -> FetchResponse {
        try WaitingThread.run { [self] in await result(of: request) }.get()
    }

    private func result(of request: FetchRequest) async -> Result<FetchResponse, FetchError> {
        do {
            return .success(try await fetch(request))
        } catch {
            return .failure(error as? FetchError ?? FetchError(.other, "\(error)"))
        }
    }

    /// Returns the body of the response, in chunks of 256 KiB; it is fetched when the first chunk is requested.
    ///
    /// The whole body is received and checked before the first chunk is returned. Needs memory for one chunk. The sequence
    /// throws the errors of ``fetch(_:)``, and ``FetchError/Code/unsuccessful`` for a status other than 2xx.
    /// ``FetchRequest/output`` is ignored.
    public func body(of request: FetchRequest) -> some AsyncSequence<Data, any Error> & Sendable {
        var whole = request
        // A file output keeps the body out of memory, also that of a stored response.
        whole.output = .file("")
        return FetchedChunks(context: context) { [self, whole] in
            try await follow(whole, Locked<String?>.Box(nil))
        }
    }

    /// Waits until no background revalidation is in progress.
    public func settle() async {
        for task in refreshes.withLock({ Array($0.values) }) { await task.value }
    }

    /// Whether a background revalidation is in progress.
    package var isRenewing: Bool { refreshes.withLock { !$0.isEmpty } }

    // MARK: Fetches

    /// Follows redirects and returns the final response.
    private func follow(_ request: FetchRequest, _ watched: Locked<String?>.Box) async throws -> Served {
        let limits = try FetchLimits(request, context.options)
        var asked = try HTTPRequest(request)
        var redirects = 0
        while true {
            let hasher = await context.responses.hasher(for: asked)
            let fetch = Fetch(
                context: context,
                request: request,
                asked: asked,
                limits: limits,
                hasher: hasher,
                watched: watched
            )
            let served = try await fetch.run()
            if served.needsRevalidation { refresh(fetch) }
            guard request.mostRedirects > 0, let next = try served.redirect(of: asked) else { return served }
            redirects += 1
            guard redirects <= request.mostRedirects else {
                let place = next.url.place
                throw FetchError(.tooManyRedirects, "\(place): more than \(request.mostRedirects) redirects")
            }
            asked = next
        }
    }

    /// Revalidates in the background the response that `fetch` has returned, unless a revalidation of its URL is in
    /// progress.
    private func refresh(_ fetch: Fetch) {
        let name = fetch.asked.url.text
        refreshes.withLock { tasks in
            guard tasks[name] == nil else { return }
            tasks[name] = Task.detached { [self] in
                do {
                    _ = try await fetch.renewing().run()
                } catch {
                    // No caller waits for the result; the next caller that finds the response stale tries again.
                }
                refreshes.withLock { $0[name] = nil }
            }
        }
    }

    /// Returns a task that reports the progress of the current download to the caller, until it is cancelled; nil if the
    /// caller wants no progress.
    private func watch(_ request: FetchRequest, _ watched: Locked<String?>.Box) -> Task<Void, Never>? {
        guard let progress = request.progress else { return nil }
        return Task { [self] in
            // Sleeping fails only when the task is cancelled.
            while (try? await Task.sleep(for: .milliseconds(100))) != nil {
                guard let key = watched.value.withLock({ $0 }) else { continue }
                guard let state = await state(of: key) else { continue }
                if !Task.isCancelled { progress(state) }
            }
        }
    }

    private func state(of key: String) async -> FetchProgress? {
        let cache = context.responses.cache
        return await context.blocking { () throws(Never) -> FetchProgress? in
            do throws(CacheError) {
                guard let state = try cache.partialState(forKey: key) else { return nil }
                let response = state.note.flatMap {
                    StoredResponse(String(decoding: $0, as: UTF8.self), body: { .part(0..<0, of: $0) })
                }
                let process = try cache.processComputing(key)
                return FetchProgress(
                    received: state.length,
                    total: response?.length.map { Int64($0) },
                    joinedProcess: process == CurrentProcess.identifier ? nil : process
                )
            } catch {
                // For display only: the next check may succeed.
                return nil
            }
        }
    }
}

extension Fetch {
    /// Returns the same fetch for the background, whose body is not used and which returns no stale response.
    fileprivate func renewing() -> Fetch {
        var request = request
        request.progress = nil
        request.output = .file("")
        request.mode = .standard
        return Fetch(
            context: context,
            request: request,
            asked: asked,
            limits: limits.renewing(),
            hasher: hasher,
            watched: Locked<String?>.Box(nil)
        )
    }
}
