// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

// Handling of the origin server's response.

extension Fetch {
    func conclude(
        _ ending: FetchStateMachine.Ending,
        _ course: FetchStateMachine,
        _ download: Download,
        _ found: Found
    ) async throws -> Served {
        var status = CacheStatus()
        status.forward = course.forwarded.reason
        status.forwardStatus = course.status
        switch ending {
        case .fail(let error): throw error
        case .stale(let answer, let error):
            await context.blocking { () throws(Never) in download.abandon() }
            var stale = CacheStatus(staleAfter: error)
            stale.forwardStatus = course.status
            let words = "\(asked.url.place): status \(course.status ?? 0)"
            let replaced = error ?? FetchError(.other, words, status: course.status)
            guard var served = try await serve(answer, found.stored, stale) else { throw replaced }
            served.replaced = replaced
            return served
        case .renew(let response, let answer):
            await context.blocking { () throws(Never) in download.abandon() }
            return try await renewed(response, answer, found, status)
        case .pass(let response, let removes):
            return try await passed(response, removes: removes, download, found, status)
        case .store(let response, let requested, let received):
            return try await stored(response, requested, received, download, found, status)
        }
    }

    /// Handles a 304: replaces the fields of the stored response without writing its bytes.
    private func renewed(
        _ response: StoredResponse,
        _ answer: CachedAnswer,
        _ found: Found,
        _ status: CacheStatus
    ) async throws -> Served {
        var status = status
        var stored = found.stored
        let terms = terms(response)
        let responses = responses
        let (old, choice, url) = (found.stored, found.choice, asked.url)
        let renewed = await attempt { () throws -> Stored? in
            guard let old else { return nil }
            return try responses.renew(old, as: response, url, choice, terms)
        }
        if let renewed {
            stored = renewed
            status.isStored = true
        }
        if let served = try await serve(answer, stored, status) { return served }
        let words = "the stored response was removed: try again"
        throw FetchError(.other, "\(asked.url.place): \(words)", status: 304)
    }

    /// Answers with the received response without storing it.
    private func passed(
        _ response: HTTPResponse,
        removes: Bool,
        _ download: Download,
        _ found: Found,
        _ status: CacheStatus
    ) async throws -> Served {
        let cache = responses.cache
        let old = removes ? found.stored : nil
        let isBody = (200..<300).contains(response.status) && asked.method != "HEAD"
        let digest = isBody ? limits.digest : nil
        let place = asked.url.place
        var served = Served(response, asked.url, status)
        served.body = try await context.blocking { () throws(FetchError) -> FetchedBody in
            do throws(CacheError) {
                if let old { try cache.remove(forKey: old.key) }
            } catch {
                cache.count(.cacheFailure)
            }
            invalidate(response)
            if digest != nil, response.status == 206 {
                let words = "a part of the body came, which has another digest"
                throw FetchError(.digestMismatch, "\(place): \(words)")
            }
            let body: FetchedBody
            do throws(Errno) {
                body = try download.body()
            } catch {
                throw FetchError(writing: "a file for the body", error)
            }
            download.release()
            if let digest { try Self.check(body, digest, place) }
            return body
        }
        return served
    }

    /// Removes the stored responses that the response to an unsafe request invalidates.
    func invalidate(_ response: HTTPResponse) {
        for url in limits.policy.invalidated(by: response, to: asked) {
            do throws(CacheError) {
                try responses.invalidate(url)
            } catch {
                responses.cache.count(.cacheFailure)
            }
        }
    }

    /// Stores the received response and answers with it.
    private func stored(
        _ response: HTTPResponse,
        _ requested: HTTPDate,
        _ received: HTTPDate,
        _ download: Download,
        _ found: Found,
        _ status: CacheStatus
    ) async throws -> Served {
        guard !download.isDropped, let partial = download.partial,
            let variant = download.variant(of: response)
        else {
            return try await passed(response, removes: false, download, found, status)
        }
        let kept = StoredResponse(
            status: response.status,
            fields: StoredFields.of(response.fields),
            requested: requested,
            received: received,
            variant: variant,
            body: .complete(0)
        )
        let (responses, url, choice, terms) = (responses, asked.url, found.choice, terms(kept))
        let expected = (200..<300).contains(response.status) ? limits.digest : nil
        let file = try await context.blocking { try download.body() }
        let mismatch = Locked<Digest?>.Box(nil)
        let stored = await attempt { () throws -> Stored? in
            try responses.store(partial, kept, url, seen: choice, terms) { (digest) throws(CacheError) in
                guard let expected, digest != expected else { return }
                mismatch.value.withLock { $0 = digest }
                throw CacheError(.invalidArgument, "store \(url.place): it has another digest")
            }
        }
        // `release` does not delete the file if it has become an object.
        await context.blocking { () throws(Never) in download.release() }
        if let digest = mismatch.value.withLock({ $0 }) { throw Self.mismatch(digest, url.place) }
        if stored == nil, let expected {
            // It was not stored, perhaps before its digest was compared.
            try await context.blocking { () throws(FetchError) in try Self.check(file, expected, url.place) }
        }
        var served = Served(response, asked.url, status)
        served.fields = StoredFields.of(response.fields)
        served.body = file
        if let stored {
            served.cacheStatus.isStored = true
            served.cacheStatus.key = stored.key
            served.digest = "sha256:\(stored.entry.digest)"
        }
        served.cacheStatus.timeToLive = terms.fresh
        if let stored, asked.fields.contains("Range") {
            let (policy, now) = (limits.policy, responses.date)
            let answer = policy.answer(asked, from: stored.response, now: now, isValidated: true)
            if let answer, let part = try await serve(answer, stored, served.cacheStatus) { return part }
        }
        return served
    }

    // MARK: Parts

    private func terms(_ response: StoredResponse) -> ResponseStore.Terms {
        let freshness = limits.policy.freshness(of: response, now: responses.date)
        return ResponseStore.Terms(fresh: max(0, freshness.remaining), tags: request.tags)
    }

    /// Runs `body`; a failure of the cache is counted, and does not fail the fetch.
    private func attempt<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value?) async -> Value? {
        let cache = responses.cache
        return await context.blocking { () throws(Never) -> Value? in
            do {
                return try body()
            } catch {
                cache.count(.cacheFailure)
                return nil
            }
        }
    }

    private static func check(_ body: FetchedBody, _ digest: Digest, _ place: String) throws(FetchError) {
        let found: Digest
        do throws(Errno) {
            found =
                switch body {
                case .nothing: Digest(of: Data())
                case .data(let data): Digest(of: data)
                case .file(let file, _): Digest(bytes: try file.digest())
                }
        } catch {
            throw FetchError(writing: "a file for the body", error)
        }
        if found != digest { throw mismatch(found, place) }
    }

    private static func mismatch(_ digest: Digest, _ place: String) -> FetchError {
        FetchError(.digestMismatch, "\(place): the body has another digest than it should: sha256:\(digest)")
    }
}
