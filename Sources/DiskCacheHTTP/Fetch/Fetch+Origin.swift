// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform
import Transport

// Sending requests to the origin server, and receiving responses.

extension Fetch {
    /// Sends `forwarded`, retries if necessary, and returns the answer.
    func exchange(_ forwarded: ForwardedRequest, _ found: Found) async throws -> Served {
        let inquiry = FetchStateMachine.Inquiry(
            policy: limits.policy,
            request: asked,
            judged: limits.judged(asked),
            stored: found.stored?.response,
            mode: request.mode,
            retries: max(0, request.retries),
            longestPause: context.options.longestRetryPause
        )
        var course = FetchStateMachine(inquiry, forwarded)
        let key = responses.flightKey(asked, found.choice, hasher)
        let download = try await makeDownload(key, for: forwarded.request)
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
            await context.blocking { () throws(Never) in
                // The origin server may have carried out the request, even if no response, or only a part of one, was
                // received.
                let isSent = (error as? FetchError)?.isBeforeRequest != true
                if let head = download.head ?? (isSent ? HTTPResponse(200, [:]) : nil) { invalidate(head) }
                download.abandon(after: error)
            }
            throw error
        }
    }

    private func makeDownload(_ key: String, for forwarded: HTTPRequest) async throws -> Download {
        let terms = Download.Terms(
            policy: limits.policy,
            request: asked,
            hasher: hasher,
            mostBytes: limits.mostBytes,
            deadline: limits.deadline
        )
        let responses = responses
        // To validate a stored response, the request is sent without its range.
        let isGet = asked.method == "GET" && !forwarded.fields.contains("Range")
        let isStorable = isGet && !CacheControl(asked.fields).contains("no-store")
        return try await context.blocking { () throws -> Download in
            var partial: PartialFile?
            do throws(CacheError) {
                partial = isStorable ? try responses.cache.partialFile(forKey: key) : nil
            } catch {
                // A failure to write to the cache does not prevent the fetch.
                responses.cache.count(.cacheFailure)
            }
            do throws(Errno) {
                return try Download(partial, in: responses.cache, terms)
            } catch {
                throw FetchError(writing: "a file for the body", error)
            }
        }
    }

    // MARK: One attempt

    private func send(
        _ request: HTTPRequest,
        _ download: Download,
        _ course: inout FetchStateMachine
    ) async throws {
        let responses = responses
        do {
            try limits.check(request)
            let resuming = try await context.blocking { try download.prepare(request) }
            let requested = responses.date
            let call = call(request, resuming, download, requested)
            let answer = try await context.transport.perform(call)
            let response = HTTPResponse(answer)
            let receipt = try await context.blocking {
                try download.receipt(of: response, now: responses.date)
            }
            switch receipt {
            case .again: course.beginAnew()
            case .whole(let response): course.received(response, requested: requested, at: moment)
            }
        } catch let error as TransportError {
            if error.code == .cancelled { throw CancellationError() }
            course.failed(try await context.blocking { try download.failure(error) }, at: moment)
        } catch let error as Errno {
            course.failed(FetchError(writing: "a file for the body", error), at: moment)
        } catch let error as FetchError {
            course.failed(error, at: moment)
        }
    }

    private var moment: FetchStateMachine.Moment {
        FetchStateMachine.Moment(date: responses.date, left: limits.left, jitter: Double.random(in: 0...1))
    }

    private func call(
        _ request: HTTPRequest,
        _ resuming: HTTPFields,
        _ download: Download,
        _ requested: HTTPDate
    ) -> TransportRequest {
        var call = TransportRequest(request.url.text, method: request.method)
        var fields = request.fields
        // The transport states how it sends the body.
        fields.remove(["Content-Length", "Transfer-Encoding"])
        call.fields = fields.lines + resuming.lines
        if !request.fields.contains("User-Agent") {
            call.fields.append(HeaderField("User-Agent", "diskcache"))
        }
        if request.method != "GET", request.method != "HEAD" {
            // An empty body is sent as Content-Length: 0 (RFC 9110, section 8.6).
            let hasContent = ["POST", "PUT", "PATCH"].contains(request.method)
            call.body = self.request.body ?? (hasContent ? Data() : nil)
        }
        call.output = .descriptor(download.number)
        call.mostBytes = Int64(limits.mostBytes)
        call.timeLimit = limits.left
        call.connectLimit = limits.connectLimit
        call.stallLimit = limits.stallLimit
        call.security = context.security
        let responses = responses
        call.disposition = { answer in
            download.disposition(HTTPResponse(answer), requested: requested, now: responses.date)
        }
        call.mayGrow = { download.mayGrow($0) }
        // At least 64 MiB at a time, since each call collects garbage. Stored values are not evicted for a body that is
        // not stored.
        call.makeSpace = { download.isStorable && responses.cache.makeSpace(max($0, 64 << 20)) }
        return call
    }
}

extension HTTPResponse {
    init(_ response: TransportResponse) {
        var fields = HTTPFields()
        for field in response.fields { fields.add(field.name, HTTPText.onOneLine(field.value)) }
        self.init(response.status, fields)
    }
}

extension Served {
    /// Creates the answer from a response that was just received.
    init(_ response: HTTPResponse, _ url: HTTPURL, _ status: CacheStatus) {
        self.init(status: response.status, fields: response.fields, url: url)
        age = response.fields.first("Age").flatMap(HTTPText.seconds)
        cacheStatus = status
    }
}
