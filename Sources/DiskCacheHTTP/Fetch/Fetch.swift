// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

/// A single request, from the lookup of the stored response to the answer; each redirect is a separate request.
struct Fetch: Sendable {
    /// The outcome of a flight: a download that several callers may share.
    enum FlightOutcome: Sendable {
        /// This caller has sent the request to the origin server, and got this answer.
        case served(Served)
        /// This caller got a stale response in place of an error, which applies to all callers with these terms.
        case replaced(Served, FetchError, terms: String?)
        /// Another caller got a stale response in place of this error, without a retry.
        case stale(FetchError)
        /// The response is now stored.
        case arrived
        /// The response can't be shared; this caller must send a separate request.
        case alone
        /// The download failed for all callers with these terms (``FetchLimits/terms``); nil if it failed for this caller
        /// only.
        case failed(FetchError, terms: String?)
        /// The download failed for a reason that applies only to another caller.
        case again
    }

    /// The progress of the request.
    private struct Progress {
        /// The stored response at the start; nil if none was usable.
        let first: StoredResponse?
        /// Whether the request has waited for a flight; it then accepts a newly stored response even if that is stale.
        var hasWaited = false
        /// Whether the request no longer shares a flight.
        var isAlone = false
        /// How often a flight ended with a response for another caller that this request can't use.
        var arrivals = 0
        /// How often the stored response was removed between the lookup and the read.
        var losses = 0
        /// The length in bytes of the awaited download at the last check; nil before the first check.
        var length: Int64?
    }

    let context: FetchContext
    let request: FetchRequest
    let asked: HTTPRequest
    let limits: FetchLimits
    let hasher: CredentialHasher
    /// The key of the current download, for progress reports.
    let watched: Locked<String?>.Box

    var responses: ResponseStore { context.responses }

    /// Runs the request, and returns the answer.
    ///
    /// - Throws: ``FetchError``, `CancellationError`.
    func run() async throws -> Served {
        try limits.check(asked)
        var found = await find()
        var progress = Progress(first: found.stored?.response)
        while true {
            // Stored responses are removed as fast as they are stored: give up on them.
            if progress.losses > 8 { found = Found() }
            if progress.hasWaited, let served = try await arrived(found, &progress) { return served }
            let stored = found.stored
            let decision = limits.policy.decide(
                asked,
                stored: stored?.response,
                hasVariants: found.hasVariants,
                mode: request.mode,
                now: responses.date
            )
            switch decision {
            case .unavailable: return .unavailable(asked.url)
            case .answer(let answer):
                if let served = try await serve(answer, stored, CacheStatus(hit: answer)) { return served }
                progress.losses += 1
            case .answerAndRevalidate(let answer, _):
                if var served = try await serve(answer, stored, CacheStatus(hit: answer)) {
                    served.needsRevalidation = true
                    return served
                }
                progress.losses += 1
            case .forward(let forwarded):
                try context.requireThreads()
                guard isShareable(forwarded), !progress.isAlone else {
                    return try await exchange(forwarded, found)
                }
                if let served = try await together(forwarded, found, &progress) { return served }
            }
            try limits.check(asked)
            found = await find()
        }
    }

    /// Returns the stored response if this request can use it.
    private func find() async -> Found {
        let wantsBytes = request.output == .memory && asked.method == "GET"
        var found = await responses.find(asked, limits.policy, hasher, wantsBytes: wantsBytes)
        if let digest = limits.digest, let stored = found.stored,
            (200..<300).contains(stored.response.status),
            stored.entry.digest != digest
        {
            found.stored = nil
        }
        return found
    }

    // MARK: Answers from the stored response

    /// Returns the answer with the bytes of the stored response, or nil if the response was removed.
    func serve(_ answer: CachedAnswer, _ stored: Stored?, _ status: CacheStatus) async throws -> Served? {
        guard let stored else { return nil }
        var served = Served(status: answer.status, fields: answer.fields, url: asked.url)
        served.digest = "sha256:\(stored.entry.digest)"
        served.age = answer.freshness.age
        served.cacheStatus = status
        served.cacheStatus.key = stored.key
        served.cacheStatus.timeToLive = answer.freshness.remaining
        guard let bytes = answer.bytes, !bytes.isEmpty, asked.method == "GET" else { return served }
        if bytes.count > limits.mostBytes {
            throw FetchError(.tooLarge, "\(asked.url.place): longer than \(limits.mostBytes) bytes")
        }
        if let value = stored.value {
            let begin = value.startIndex + bytes.lowerBound
            let isWhole = bytes.count == value.count
            served.body = .data(isWhole ? value : Data(value[begin..<begin + bytes.count]))
            return served
        }
        let responses = responses
        let file = try await context.blocking { () throws -> OpenFile? in
            do {
                return try responses.open(stored)
            } catch is CacheError {
                // An unreadable response counts as removed.
                return nil
            }
        }
        guard let file else { return nil }
        served.body = .file(file, bytes)
        return served
    }

    /// Returns the answer from a response that was stored since the start, or nil if there is none.
    private func arrived(_ found: Found, _ progress: inout Progress) async throws -> Served? {
        guard let stored = found.stored, stored.response.issue != progress.first?.issue else { return nil }
        let (policy, now) = (limits.policy, responses.date)
        if policy.forbidsStoring(stored.response.control, stored.response.status) {
            // It was stored for a caller that has chosen its lifetime.
            progress.isAlone = true
            return nil
        }
        guard let answer = policy.answer(asked, from: stored.response, now: now, isValidated: true) else {
            return nil
        }
        var status = CacheStatus()
        status.forward = progress.first == nil ? .uriMiss : .stale
        status.isCollapsed = true
        return try await serve(answer, stored, status)
    }

    /// Returns the stale response that replaces an error; nil if the policy does not allow that.
    private func replacement(for error: FetchError, _ found: Found) async throws -> Served? {
        let judged = limits.judged(asked)
        guard error.tellsOfServer, let stored = found.stored,
            let answer = limits.policy.replacement(for: judged, stored: stored.response, now: responses.date)
        else { return nil }
        var status = CacheStatus(staleAfter: error.status == nil ? error : nil)
        status.forwardStatus = error.status
        return try await serve(answer, stored, status)
    }

    // MARK: Shared requests

    /// Returns whether one response can serve all callers that send the same request.
    private func isShareable(_ forwarded: ForwardedRequest) -> Bool {
        asked.method == "GET" && forwarded.reason != .bypass && !asked.isConditional
    }

    /// Leads or joins the flight for the request; returns nil if the lookup must be repeated.
    private func together(
        _ forwarded: ForwardedRequest,
        _ found: Found,
        _ progress: inout Progress
    ) async throws -> Served? {
        let key = responses.flightKey(asked, found.choice, hasher)
        watched.value.withLock { $0 = key }
        switch try await lead(key, &progress) {
        case .served(let served), .replaced(let served, _, _): return served
        case .arrived:
            progress.hasWaited = true
            progress.arrivals += 1
            // Each of the other callers may store a different response that this request can't use.
            if progress.arrivals > 8 { progress.isAlone = true }
        case .alone: progress.isAlone = true
        case .failed(let error, _):
            guard let served = try await replacement(for: error, found) else { throw error }
            return served
        case .stale(let error):
            if let served = try await replacement(for: error, found) { return served }
            progress.arrivals += 1
            // Each of the other callers may accept a stale response.
            if progress.arrivals > 8 { progress.isAlone = true }
        case .again: break
        }
        return nil
    }

    /// Leads the flight for this request, across all processes, or waits for its leader.
    ///
    /// Followers in this process get the leader's outcome; followers in other processes look up the stored response.
    private func lead(_ key: String, _ progress: inout Progress) async throws -> FlightOutcome {
        let first = progress.first
        // The first check comes early: only the second check can tell whether the download makes progress.
        let stall = limits.stallLimit
        let pause = progress.length == nil ? min(.seconds(5), stall) : stall + .seconds(5)
        let wait = min(pause, limits.left ?? .seconds(86_400))
        var reading = ReadOptions(waitLimit: wait, failsAtWaitLimit: true)
        reading.asksRemote = false
        do {
            let flights = responses.cache.typed(by: FlightOutcome.Codec())
            let hit = try await flights.hit(forKey: key, reading: reading) { _ async throws in
                .unkept(try await flown(since: first))
            }
            guard let hit else { return .alone }
            return hit.source == .joined ? hit.value.followed(with: limits.terms) : hit.value
        } catch let error as CacheError where error.code == .timedOut {
            // The leader may be slow, or its process stopped.
            try limits.check(asked)
            let responses = responses
            let length = await context.blocking { () throws(Never) -> Int64? in
                do throws(CacheError) {
                    return try responses.cache.partialState(forKey: key)?.length ?? -1
                } catch {
                    responses.cache.count(.cacheFailure)
                    return nil
                }
            }
            guard let length else { return .alone }
            let goesOn = progress.length.map { length > $0 } ?? true
            progress.length = length
            // Waiting makes sense while bytes arrive.
            if goesOn { progress.arrivals = 0 }
            return goesOn ? .arrived : .alone
        }
    }

    /// Sends the request on behalf of all waiting callers, unless the response was stored in the meantime.
    private func flown(since first: StoredResponse?) async throws -> FlightOutcome {
        let found = await find()
        if let stored = found.stored, stored.response.issue != first?.issue { return .arrived }
        let decision = limits.policy.decide(
            asked,
            stored: found.stored?.response,
            hasVariants: found.hasVariants,
            mode: request.mode,
            now: responses.date
        )
        guard case .forward(let forwarded) = decision else { return .arrived }
        do {
            let served = try await exchange(forwarded, found)
            guard let error = served.replaced else { return .served(served) }
            return .replaced(served, error, terms: limits.terms(sharing: error))
        } catch let error as FetchError {
            return .failed(error, terms: limits.terms(sharing: error))
        }
    }
}

extension Fetch.FlightOutcome {
    /// A codec that always throws, because outcomes are never stored.
    struct Codec: CacheCodec {
        private struct NotStored: Error {}

        func encode(_ value: Fetch.FlightOutcome) throws -> Data { throw NotStored() }

        func decode(_ data: Data) throws -> Fetch.FlightOutcome { throw NotStored() }
    }

    /// Returns what this outcome means for a follower with the given terms.
    func followed(with terms: String) -> Fetch.FlightOutcome {
        switch self {
        case .served(let served): served.cacheStatus.isStored ? .arrived : .alone
        case .replaced(_, let error, terms): .stale(error)
        case .failed(_, terms): self
        case .replaced, .failed: .again
        case .arrived, .alone, .again, .stale: self
        }
    }
}

extension CacheStatus {
    /// Creates the status of an answer that needed no request to the origin server.
    init(hit answer: CachedAnswer) {
        self.init()
        isHit = true
        if !answer.freshness.isFresh { detail = "stale" }
    }

    /// Creates the status of a stale answer that replaces an error.
    init(staleAfter error: FetchError?) {
        self.init()
        forward = .stale
        detail = error.map { "stale-if-error:\($0.code.rawValue)" } ?? "stale-if-error"
    }
}
