// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheCommand
import DiskCacheHTTP
import FoundationEssentials
import Platform

/// One execution of `fetch`: several concurrent downloads, whose results are written in order.
struct FetchRun {
    /// Returns a response from the cache, or from the server; blocks the calling thread.
    typealias Downloader = @Sendable (FetchRequest) throws(FetchError) -> FetchResponse

    private let plan: FetchPlan
    private let download: Downloader
    /// The directory for temporary files with bodies: the cache's directory, in which these files have no name.
    private let directory: String
    private let progress: FetchLine
    /// Results that are not yet written, by the index of their request.
    private let ended = Monitored<[Int: Result<FetchedBody, any Error>]>([:])

    init(_ plan: FetchPlan, directory: String, _ download: @escaping Downloader) {
        self.plan = plan
        self.download = download
        self.directory = directory
        progress = FetchLine(plan.requests)
    }

    /// Returns the status of the first request that failed, or 0.
    func run() throws -> ExitStatus {
        var status = ExitStatus.done
        defer { progress.line.clear() }
        if plan.parallel == 1 || plan.requests.count == 1 {
            for index in plan.requests.indices {
                let result = Result { () throws(any Error) in try fetch(index) }
                progress.end(index)
                progress.line.clear()
                let end = try finish(index, result)
                if status == .done { status = end }
            }
            return status
        }
        let pool = ThreadPool("diskcache-fetch", limit: plan.parallel)
        for index in plan.requests.indices.prefix(plan.parallel) { start(index, on: pool) }
        for index in plan.requests.indices {
            guard let result = ended.wait(for: { $0.removeValue(forKey: index) }) else { continue }
            // No more requests are started ahead, because each download holds a file open.
            if index + plan.parallel < plan.requests.count { start(index + plan.parallel, on: pool) }
            progress.line.clear()
            let end = try finish(index, result)
            if status == .done { status = end }
        }
        return status
    }

    // MARK: Fetching

    private func start(_ index: Int, on pool: ThreadPool) {
        pool.run {
            let result = Result { () throws(any Error) in try self.fetch(index) }
            self.progress.end(index)
            self.ended.withLock { $0[index] = result }
            self.ended.wakeAll()
        }
    }

    private func fetch(_ index: Int) throws -> FetchedBody {
        if let target = plan.target(index) {
            return FetchedBody(response: try fetch(index, to: target), file: nil)
        }
        let file = try makeFile()
        let response = try fetch(index, to: .descriptor(file.descriptor.rawValue))
        return FetchedBody(response: response, file: file)
    }

    private func fetch(_ index: Int, to target: FetchRequest.Output) throws(FetchError) -> FetchResponse {
        var request = plan.requests[index]
        request.output = target
        // Progress is reported on another thread, which a stored response does not need.
        if progress.line.isShown { request.progress = { [progress] in progress.hear($0, of: index) } }
        return try download(request)
    }

    /// Creates an unnamed file for a body that can't be written yet.
    private func makeFile() throws(Failure) -> FetchedBody.File {
        do throws(Errno) {
            return FetchedBody.File(try FileDescriptor.unnamed(in: directory))
        } catch {
            throw Failure(
                .inputOutput,
                "fetch: create a file in \(directory): \(error): run `diskcache doctor`"
            )
        }
    }

    // MARK: Writing

    /// Writes the result of a request, and returns its status.
    private func finish(_ index: Int, _ result: Result<FetchedBody, any Error>) throws -> ExitStatus {
        let place = FetchText.place(plan.requests[index].url)
        do {
            let body = try result.get()
            let response = body.response
            if plan.isVerbose {
                try Output.complain("\(place): \(response.outcome.rawValue): \(response.cacheStatus)")
            }
            let refusal = response.refusal(place)
            if refusal == nil || plan.includesHead {
                try write(body, index)
                if body.isCut { try Output.complain("\(place): only the first MiB of the body was written") }
            }
            if refusal == nil { try keepTime(of: response, index) }
            try report(index, response, refusal)
            if let refusal { try Output.complain(refusal.message) }
            return refusal?.status ?? .done
        } catch let error as FetchError where error.cause == .brokenPipe && plan.files[index] == nil {
            // The reader of the output has exited, so the other bodies would be useless, too.
            throw Errno.brokenPipe
        } catch let error as FetchError {
            let failure = Failure(error)
            return try complain(index, failure.message, failure.status)
        } catch let failure as Failure {
            return try complain(index, failure.message, failure.status)
        } catch let error as CacheError {
            return try complain(index, error.message, ExitStatus(error.code))
        }
    }

    private func write(_ body: FetchedBody, _ index: Int) throws {
        // A body that is not in a temporary file is already written.
        guard plan.target(index) == nil else { return }
        let head = plan.includesHead ? body.response.head : ""
        guard let path = plan.files[index] else {
            if !head.isEmpty { try Output.draw(head.harmlessHead, to: Terminal.standardOutput) }
            try FileDescriptor.borrowing(Terminal.standardOutput) { (output) throws(Errno) in
                try body.copy(to: output)
            }
            return
        }
        do throws(Errno) {
            try OutputFile.write(path) { (output) throws(Errno) in
                if !head.isEmpty { try output.writeAll(head.utf8Span.span) }
                try body.copy(to: output)
            }
        } catch {
            let isForbidden = error == .accessDenied || error == .notPermitted
            let message = "fetch: write \(path): \(error): give a file that can be written"
            throw Failure(isForbidden ? .permission : .inputOutput, message)
        }
    }

    /// Sets the file's modification time to the value of Last-Modified, like curl's option -R.
    private func keepTime(of response: FetchResponse, _ index: Int) throws(Failure) {
        guard plan.keepsTime, let path = plan.files[index], let modified = response.modified else { return }
        // 64 bits of nanoseconds cover the years 1677 to 2262.
        let seconds = min(max(modified, Int64.min / 1_000_000_000), Int64.max / 1_000_000_000)
        do throws(Errno) {
            try OutputFile.setModified(path, to: Timestamp(nanoseconds: seconds * 1_000_000_000))
        } catch {
            throw Failure(.inputOutput, "fetch: set the time of \(path): \(error): omit --remote-time")
        }
    }

    private func report(_ index: Int, _ response: FetchResponse, _ refusal: Failure?) throws {
        guard plan.isJSON else { return }
        let asked = FetchText.withoutCredentials(plan.requests[index].url)
        // With --include the body of an error is written, too.
        let file = refusal == nil || plan.includesHead ? plan.files[index] : nil
        try Output.print(JSON.line(response.json(asked: asked, file: file, error: refusal?.message)))
    }

    /// Reports a failure in one line; with --json also as an object, so that there is one object per URL.
    private func complain(_ index: Int, _ message: String, _ status: ExitStatus) throws -> ExitStatus {
        if plan.isJSON {
            let asked = FetchText.withoutCredentials(plan.requests[index].url)
            try Output.print(JSON.line(["url": asked, "error": message] as JSON.Object))
        }
        try Output.complain(message)
        return status
    }
}

/// A response, and the temporary file with its body if that is not written yet.
struct FetchedBody: Sendable {
    /// A file that disappears with the last reference to it.
    final class File: Sendable {
        let descriptor: FileDescriptor

        init(_ descriptor: consuming FileDescriptor) {
            self.descriptor = descriptor
        }
    }

    let response: FetchResponse
    let file: File?

    /// Whether only the beginning of an error's body was kept.
    var isCut: Bool { !response.body.isEmpty && response.body.count < response.length }

    /// Writes the body; for an error, only the part that was kept.
    func copy(to output: borrowing FileDescriptor) throws(Errno) {
        if !response.body.isEmpty { return try output.writeAll(response.body.span) }
        guard let file else { return }
        try file.descriptor.rewind()
        try output.copyAll(from: file.descriptor)
    }
}

extension FetchResponse {
    /// The time in the Last-Modified field (RFC 9110, section 8.8.2), in seconds since 1970; nil if it is missing or
    /// invalid.
    fileprivate var modified: Int64? {
        let now = HTTPDate(seconds: Int(Date.now.timeIntervalSince1970))
        let line = fields.first { $0.name.lowercased() == "last-modified" }
        return line.flatMap { HTTPDate($0.value, now: now) }.map { Int64($0.seconds) }
    }
}

extension String {
    /// The head of a message; on a terminal without characters that the terminal would interpret.
    fileprivate var harmlessHead: String {
        guard Terminal.isInteractive(Terminal.standardOutput) else { return self }
        return split(separator: "\r\n", omittingEmptySubsequences: false)
            .map { String($0).singleLine }.joined(separator: "\r\n")
    }
}
