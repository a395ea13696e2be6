// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

/// One request, from the look at what is stored to the answer; a redirect is another one.
struct Fetch: Sendable {
    /// How it went with the download that others want as well.
    enum Lead: Sendable {
        /// This one has asked the origin.
        case served(Served)
        /// The response is stored now.
        case arrived
        /// The response is for this caller only.
        case alone
        /// It would have failed for everybody with these terms (``FetchLimits/terms``); nil: for nobody else.
        case failed(FetchError, terms: String?)
        /// It has failed for a reason that holds for others only.
        case again
    }

    /// How far it has got.
    private struct Progress {
        /// What was stored at the beginning; nil: nothing of use.
        let first: StoredHead?
        /// Whether what has come since the beginning will do, however stale it is.
        var hasWaited = false
        /// Whether it asks beside those who ask together.
        var isAlone = false
        /// How often others have said that they have stored it, and nothing of use to this request was there.
        var arrivals = 0
        /// How often what was found had gone again.
        var losses = 0
        /// Of the download that was waited for, at the last look; nil: none was taken.
        var length: Int64?
    }

    let http: HTTPCache
    let request: FetchRequest
    let asked: HTTPRequest
    let limits: FetchLimits
    let seal: Seal
    /// The key of the download that is under way, for those who watch.
    let watched: Locked<String?>.Box

    var shelf: Shelf { http.shelf }

    /// The answer.
    ///
    /// - Throws: ``FetchError``, `CancellationError`.
    func run() async throws -> Served {
        try limits.check(asked)
        var found = await find()
        var progress = Progress(first: found.stored?.head)
        while true {
            // Something else takes it away as fast as it comes.
            if progress.losses > 8 { found = Found() }
            if progress.hasWaited, let served = try await arrived(found, progress) { return served }
            let stored = found.stored
            let decision = limits.policy.decide(
                asked,
                stored: stored?.response,
                hasVariants: found.hasVariants,
                mode: request.mode,
                now: shelf.date
            )
            switch decision {
            case .unavailable: return .unavailable(asked.url)
            case .answer(let answer):
                if let served = try await serve(answer, stored, CacheStatus(hit: answer)) { return served }
                progress.losses += 1
            case .answerAndRevalidate(let answer, _):
                if let served = try await serve(answer, stored, CacheStatus(hit: answer)) {
                    http.refresh(self)
                    return served
                }
                progress.losses += 1
            case .forward(let forwarded):
                guard isShareable(forwarded), !progress.isAlone else {
                    return try await exchange(forwarded, found)
                }
                if let served = try await together(forwarded, found, &progress) { return served }
            }
            try limits.check(asked)
            found = await find()
        }
    }

    /// What is stored, of use to this request.
    private func find() async -> Found {
        let wantsBytes = request.output == .memory && asked.method == "GET"
        var found = await shelf.find(asked, limits.policy, seal, wantsBytes: wantsBytes)
        if let digest = limits.digest, let stored = found.stored, (200..<300).contains(stored.head.status),
            stored.entry.digest != digest
        {
            found.stored = nil
        }
        return found
    }

    // MARK: Answers from what is stored

    /// The answer with the bytes of what is stored; nil where they are gone.
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
        let shelf = shelf
        let file = try await http.blocking { () throws -> OpenFile? in
            do {
                return try shelf.open(stored)
            } catch is CacheError {
                // As good as gone.
                return nil
            }
        }
        guard let file else { return nil }
        served.body = .file(file, bytes)
        return served
    }

    /// The answer with what has come since this began; nil where nothing has.
    private func arrived(_ found: Found, _ progress: Progress) async throws -> Served? {
        guard let stored = found.stored, stored.head.issue != progress.first?.issue else { return nil }
        let (policy, now) = (limits.policy, shelf.date)
        guard let answer = policy.answer(asked, from: stored.response, now: now, isValidated: true) else {
            return nil
        }
        var status = CacheStatus()
        status.forward = progress.first == nil ? .uriMiss : .stale
        status.isCollapsed = true
        return try await serve(answer, stored, status)
    }

    /// The answer with something stale in the place of an error, if that is allowed.
    private func replacing(_ error: FetchError, _ found: Found) async throws -> Served {
        let judged = limits.judged(asked)
        guard error.tellsOfServer, let stored = found.stored,
            let answer = limits.policy.replacement(for: judged, stored: stored.response, now: shelf.date),
            let served = try await serve(answer, stored, CacheStatus(staleAfter: error))
        else { throw error }
        return served
    }

    // MARK: Asking together

    /// Whether one answer does for all who ask this.
    private func isShareable(_ forwarded: ForwardedRequest) -> Bool {
        asked.method == "GET" && forwarded.reason != .bypass && !asked.isConditional
    }

    /// Asks, or waits for somebody who does; nil: look again.
    private func together(
        _ forwarded: ForwardedRequest,
        _ found: Found,
        _ progress: inout Progress
    ) async throws -> Served? {
        let key = shelf.flightKey(asked, found.choice, seal)
        watched.value.withLock { $0 = key }
        switch try await lead(key, &progress) {
        case .served(let served): return served
        case .arrived:
            progress.hasWaited = true
            progress.arrivals += 1
            // Others may store what this request can't use, each of them once more.
            if progress.arrivals > 8 { progress.isAlone = true }
        case .alone: progress.isAlone = true
        case .failed(let error, _): return try await replacing(error, found)
        case .again: break
        }
        return nil
    }

    /// Leads the flight of those who want the same, in all processes, or waits for who does.
    ///
    /// Its value says only how that went, to the others of this process; those of other processes find what
    /// is stored.
    private func lead(_ key: String, _ progress: inout Progress) async throws -> Lead {
        let own = Locked<Lead?>.Box(nil)
        let first = progress.first
        // The first look comes soon, as only what has come between two looks tells who still downloads.
        let stall = limits.stallLimit
        let pause = progress.length == nil ? min(.seconds(5), stall) : stall + .seconds(5)
        let wait = min(pause, limits.left ?? .seconds(86_400))
        var reading = ReadOptions(waitLimit: wait, failsAtWaitLimit: true)
        reading.asksRemote = false
        do {
            let hit = try await shelf.cache.hit(forKey: key, reading: reading) {
                (_: Computation<Data>) async throws -> Computed<Data> in
                let lead = try await flown(since: first)
                own.value.withLock { $0 = lead }
                return .unkept(lead.word)
            }
            if let lead = own.value.withLock({ $0 }) { return lead }
            // The stored value is not the result of a flight.
            guard let hit, hit.source == .computed || hit.source == .joined else { return .alone }
            return Lead(word: hit.value, terms: limits.terms)
        } catch let error as CacheError where error.code == .timedOut {
            // Whoever downloads may be slow, or stopped.
            try limits.check(asked)
            let shelf = shelf
            let state = try await http.blocking { try shelf.cache.partialState(forKey: key) }
            let length = state?.length ?? -1
            let goesOn = progress.length.map { length > $0 } ?? true
            progress.length = length
            // As long as bytes come there is something to wait for.
            if goesOn { progress.arrivals = 0 }
            return goesOn ? .arrived : .alone
        }
    }

    /// Asks the origin for all who wait, unless what they want has come meanwhile.
    private func flown(since first: StoredHead?) async throws -> Lead {
        let found = await find()
        if let stored = found.stored, stored.head.issue != first?.issue { return .arrived }
        let decision = limits.policy.decide(
            asked,
            stored: found.stored?.response,
            hasVariants: found.hasVariants,
            mode: request.mode,
            now: shelf.date
        )
        guard case .forward(let forwarded) = decision else { return .arrived }
        do {
            return .served(try await exchange(forwarded, found))
        } catch let error as FetchError {
            // Only this caller's time is over.
            return .failed(error, terms: limits.left == .zero ? nil : limits.terms)
        }
    }
}

extension Fetch.Lead {
    /// What those are told who have waited.
    var word: Data {
        switch self {
        case .served(let served): Data((served.cacheStatus.isStored ? "stored" : "alone").utf8)
        case .arrived: Data("stored".utf8)
        case .alone: Data("alone".utf8)
        case .again, .failed(_, terms: nil): Data("again".utf8)
        case .failed(let error, let terms?): Data("\(error.code.rawValue)\n\(terms)\n\(error.message)".utf8)
        }
    }

    /// - Parameter terms: those of the one who is told.
    init(word: Data, terms: String) {
        let text = String(decoding: word, as: UTF8.self)
        switch text {
        case "stored": self = .arrived
        case "alone": self = .alone
        default:
            let parts = text.split(separator: "\n", maxSplits: 2)
            guard parts.count == 3, parts[1] == terms, let code = FetchError.Code(rawValue: String(parts[0]))
            else {
                self = .again
                return
            }
            self = .failed(FetchError(code, String(parts[2])), terms: terms)
        }
    }
}

extension CacheStatus {
    /// Of an answer without a question to the origin.
    init(hit answer: CachedAnswer) {
        self.init()
        isHit = true
        if !answer.freshness.isFresh { detail = "stale" }
    }

    /// Of a stale answer because of an error.
    init(staleAfter error: FetchError?) {
        self.init()
        forward = .stale
        detail = error.map { "stale-if-error:\($0.code.rawValue)" } ?? "stale-if-error"
    }
}
