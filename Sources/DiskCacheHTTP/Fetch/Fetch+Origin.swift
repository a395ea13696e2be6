// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform
import Transport

// Asking the origin, and keeping what it says.

extension Fetch {
    /// Sends `forwarded`, again if need be, and answers with what comes of it.
    func exchange(_ forwarded: ForwardedRequest, _ found: Found) async throws -> Served {
        let inquiry = FetchCourse.Inquiry(
            policy: limits.policy,
            request: asked,
            judged: limits.judged(asked),
            stored: found.stored?.response,
            mode: request.mode,
            retries: max(0, request.retries),
            longestPause: http.options.longestRetryPause
        )
        var course = FetchCourse(inquiry, forwarded)
        let download = try await makeDownload(shelf.flightKey(asked, found.choice, seal))
        do {
            while true {
                switch course.action {
                case .send(let request): try await send(request, download, &course)
                case .pause(let span):
                    try await Task.sleep(for: span)
                    course.paused()
                case .finish(let ending): return try await conclude(ending, course, download, found)
                }
            }
        } catch {
            await http.blocking { () throws(Never) in download.abandon() }
            throw error
        }
    }

    private func makeDownload(_ key: String) async throws -> Download {
        let terms = Download.Terms(
            policy: limits.policy,
            request: asked,
            seal: seal,
            mostBytes: limits.mostBytes
        )
        let shelf = shelf
        let isGet = asked.method == "GET" && !asked.fields.contains("Range")
        return try await http.blocking { () throws -> Download in
            var partial: PartialFile?
            do throws(CacheError) {
                partial = isGet ? try shelf.cache.partialFile(forKey: key) : nil
            } catch {
                // A cache that can't be written is no reason not to fetch.
                shelf.cache.count(.cacheFailure)
            }
            do throws(Errno) {
                return try Download(partial, in: shelf.cache.path, terms)
            } catch {
                throw FetchError(writing: "a file for the body", error)
            }
        }
    }

    // MARK: One attempt

    private func send(_ request: HTTPRequest, _ download: Download, _ course: inout FetchCourse) async throws {
        let origin = request.url.origin
        try await http.gate.enter(origin)
        defer { http.gate.leave(origin) }
        try limits.check(request)
        let shelf = shelf
        do {
            let resuming = try await http.blocking { try download.prepare(request, now: shelf.date) }
            let requested = shelf.date
            let call = call(request, resuming, download, requested)
            let answer = try await http.transport.perform(call)
            let response = HTTPResponse(answer)
            let receipt = try await http.blocking { try download.receipt(of: response, now: shelf.date) }
            switch receipt {
            case .again: course.beginAnew()
            case .whole(let response): course.received(response, requested: requested, at: moment)
            }
        } catch let error as TransportError {
            if error.code == .cancelled { throw CancellationError() }
            // Room is made where the disk is full; what has come so far stays.
            let isFull = error.cause?.tellsOfFullDisk ?? false
            let hasRoom = isFull ? await http.blocking { () throws(Never) in shelf.cache.makeSpace(64 << 20) } : false
            course.failed(hasRoom ? FetchError(.truncated, error.message) : FetchError(error), at: moment)
        } catch let error as Errno {
            course.failed(FetchError(writing: "a file for the body", error), at: moment)
        } catch let error as FetchError {
            course.failed(error, at: moment)
        }
    }

    private var moment: FetchCourse.Moment {
        FetchCourse.Moment(date: shelf.date, left: limits.left, jitter: Double.random(in: 0...1))
    }

    private func call(
        _ request: HTTPRequest,
        _ resuming: HTTPFields,
        _ download: Download,
        _ requested: HTTPDate
    ) -> TransportRequest {
        var call = TransportRequest(request.url.text, method: request.method)
        call.fields = (request.fields.lines + resuming.lines).map { HeaderField($0.name, $0.value) }
        if !request.fields.contains("User-Agent") { call.fields.append(HeaderField("User-Agent", "diskcache")) }
        if let body = self.request.body, request.method != "GET", request.method != "HEAD" {
            call.source = .bytes(body)
        }
        call.output = .descriptor(download.number)
        call.mostBytes = Int64(limits.mostBytes)
        call.timeLimit = limits.left
        call.connectLimit = limits.connectLimit
        call.stallLimit = limits.stallLimit
        let shelf = shelf
        call.disposition = { answer in
            download.disposition(HTTPResponse(answer), requested: requested, now: shelf.date)
        }
        return call
    }

    // MARK: The end

    private func conclude(
        _ ending: FetchCourse.Ending,
        _ course: FetchCourse,
        _ download: Download,
        _ found: Found
    ) async throws -> Served {
        var status = CacheStatus()
        status.forward = course.forwarded.reason
        status.forwardStatus = course.status
        switch ending {
        case .fail(let error): throw error
        case .stale(let answer, let error):
            await http.blocking { () throws(Never) in download.abandon() }
            var stale = CacheStatus(staleAfter: error)
            stale.forwardStatus = course.status
            if let served = try await serve(answer, found.stored, stale) { return served }
            throw error ?? FetchError(.other, "\(asked.url.place): status \(course.status ?? 0)", status: course.status)
        case .renew(let response, let answer):
            await http.blocking { () throws(Never) in download.abandon() }
            return try await renewed(response, answer, found, status)
        case .pass(let response, let removes):
            return try await passed(response, removes: removes, download, found, status)
        case .store(let response, let requested, let received):
            return try await stored(response, requested, received, download, found, status)
        }
    }

    /// A 304: the stored bytes with other fields, and not one of them written.
    private func renewed(
        _ response: StoredResponse,
        _ answer: CachedAnswer,
        _ found: Found,
        _ status: CacheStatus
    ) async throws -> Served {
        var status = status
        var stored = found.stored
        let terms = terms(response)
        let shelf = shelf
        let (old, choice, url) = (found.stored, found.choice, asked.url)
        let renewed = await attempt { try old.flatMap { try shelf.renew($0, as: response, url, choice, terms) } }
        if let renewed {
            stored = renewed
            status.isStored = true
        }
        if let served = try await serve(answer, stored, status) { return served }
        throw FetchError(.other, "\(asked.url.place): what was stored has gone: try again", status: 304)
    }

    /// What came, kept nowhere.
    private func passed(
        _ response: HTTPResponse,
        removes: Bool,
        _ download: Download,
        _ found: Found,
        _ status: CacheStatus
    ) async throws -> Served {
        let shelf = shelf
        let outdated = limits.policy.invalidated(by: response, to: asked)
        let old = removes ? found.stored : nil
        let digest = (200..<300).contains(response.status) && response.status != 206 ? limits.digest : nil
        let place = asked.url.place
        var served = Served(response, asked.url, status)
        served.body = try await http.blocking { () throws -> FetchedBody in
            do throws(CacheError) {
                if let old { try shelf.cache.remove(forKey: old.key) }
                for url in outdated { try shelf.invalidate(url) }
            } catch {
                shelf.cache.count(.cacheFailure)
            }
            do throws(Errno) {
                let body = try download.body()
                download.release()
                if let digest { try Self.check(body, digest, place) }
                return body
            } catch {
                throw FetchError(writing: "a file for the body", error)
            }
        }
        return served
    }

    /// What came, kept.
    private func stored(
        _ response: HTTPResponse,
        _ requested: HTTPDate,
        _ received: HTTPDate,
        _ download: Download,
        _ found: Found,
        _ status: CacheStatus
    ) async throws -> Served {
        guard let partial = download.partial, let variant = download.variant(of: response) else {
            return try await passed(response, removes: false, download, found, status)
        }
        let kept = StoredResponse(
            status: response.status,
            fields: KeptFields.of(response.fields),
            requested: requested,
            received: received,
            variant: variant,
            body: .complete(0)
        )
        let (shelf, url, choice, terms) = (shelf, asked.url, found.choice, terms(kept))
        let expected = (200..<300).contains(response.status) ? limits.digest : nil
        let file = try await http.blocking { try download.body() }
        let mismatch = Locked<Digest?>.Box(nil)
        let stored = await attempt {
            try shelf.store(partial, kept, url, seen: choice, terms) { (digest) throws(CacheError) in
                guard let expected, digest != expected else { return }
                mismatch.value.withLock { $0 = digest }
                throw CacheError(.invalidArgument, "store \(url.place): it has another digest")
            }
        }
        // Nothing if it is an object now.
        await http.blocking { () throws(Never) in download.release() }
        if let digest = mismatch.value.withLock({ $0 }) { throw Self.mismatch(digest, url.place) }
        var served = Served(response, asked.url, status)
        served.fields = KeptFields.of(response.fields)
        served.body = file
        if let stored {
            served.cacheStatus.isStored = true
            served.cacheStatus.key = stored.key
            served.digest = "sha256:\(stored.entry.digest)"
        }
        served.cacheStatus.timeToLive = terms.fresh
        return served
    }

    // MARK: Parts

    private func terms(_ response: StoredResponse) -> Shelf.Terms {
        let freshness = limits.policy.freshness(of: response, now: shelf.date)
        return Shelf.Terms(fresh: max(0, freshness.remaining), tags: request.tags)
    }

    /// What the cache can't do is no reason to fail.
    private func attempt<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value?) async -> Value? {
        let cache = shelf.cache
        return await http.blocking { () throws(Never) -> Value? in
            do {
                return try body()
            } catch {
                cache.count(.cacheFailure)
                return nil
            }
        }
    }

    private static func check(_ body: FetchedBody, _ digest: Digest, _ place: String) throws {
        let found =
            switch body {
            case .nothing: Digest(of: Data())
            case .data(let data): Digest(of: data)
            case .file(let file, _): Digest(bytes: try file.digest())
            }
        if found != digest { throw mismatch(found, place) }
    }

    private static func mismatch(_ digest: Digest, _ place: String) -> FetchError {
        FetchError(.digestMismatch, "\(place): the body has another digest than was asked for: sha256:\(digest)")
    }
}

extension HTTPResponse {
    init(_ response: TransportResponse) {
        var fields = HTTPFields()
        for field in response.fields { fields.add(field.name, field.value) }
        self.init(response.status, fields)
    }
}

extension Served {
    /// Of a response that came just now.
    init(_ response: HTTPResponse, _ url: HTTPURL, _ status: CacheStatus) {
        self.init(status: response.status, fields: response.fields, url: url)
        age = response.fields.first("Age").flatMap(HTTPText.seconds)
        cacheStatus = status
    }
}
