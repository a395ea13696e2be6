// SPDX-License-Identifier: Apache-2.0

import Platform

/// The libcurl handles of a process, and the threads that use them.
final class Lines: Sendable {
    private struct Idle {
        let line: Line
        let site: String
        let since: ContinuousClock.Instant
    }

    /// Servers close connections that are idle for longer: nginx after 75 s.
    private static let idleTime: Duration = .seconds(60)
    /// With this number of idle lines, one of another server is used before a new one is made.
    private static let enoughIdle = 8

    private let library: @Sendable () throws(TransportError) -> Library
    private let threads: ThreadPool
    private let idle = Locked<[Idle]>([])
    private let queue: Locked<TransferQueue<Call>>

    init(limit: Int, _ library: @escaping @Sendable () throws(TransportError) -> Library) {
        self.library = library
        queue = Locked(TransferQueue(limit: limit))
        threads = ThreadPool("diskcache-http", limit: 2 * limit)
    }

    /// Runs `call` on a thread, when it is its turn.
    func run(_ call: Call) {
        guard queue.withLock({ $0.begin(call.request.site, call) }) else { return call.setAlarm() }
        start(call)
    }

    /// Performs `call` in the calling thread if it is its turn now; otherwise returns nil.
    func performNow(_ call: Call) -> Call.Outcome? {
        guard queue.withLock({ $0.beginIfFree(call.request.site) }) else { return nil }
        let outcome = Result { () throws(TransportError) in try perform(call) }
        start(end(call))
        return outcome
    }

    /// Runs a call, whose turn it is, on a thread.
    private func start(_ call: Call?) {
        var next = call
        while let call = next {
            let work: ThreadPool.Work = { self.serve(call) }
            if threads.runIfFree(work) { return }
            call.setAlarm()
            if threads.runOnThread(work) { return }
            call.finish(.failure(call.noThread))
            next = end(call)
        }
    }

    /// Runs `call`, and then the waiting calls.
    private func serve(_ call: Call) {
        var next: Call? = call
        while let call = next {
            transfer(call)
            next = end(call)
        }
    }

    /// Ends the turn of `call` and returns the next call.
    private func end(_ call: Call) -> Call? {
        queue.withLock { queue in
            queue.end(call.request.site)
            return queue.next()
        }
    }

    /// Performs `call` in the calling thread.
    func perform(_ call: Call) throws(TransportError) -> TransportResponse {
        let site = call.request.site
        let line = try take(site)
        line.forgetWakes()
        let outcome = Result { () throws(TransportError) in try line.perform(call) }
        let letGo: ThreadPool.Work = {
            line.end()
            self.giveBack(line, site)
        }
        // A call that timed out does not wait for the name resolver.
        if case .failure(let error) = outcome, error.code == .timedOut, threads.runOnThread(letGo) {
            throw error
        }
        letGo()
        return try outcome.get()
    }

    private func transfer(_ call: Call) {
        guard !call.hasEnded else { return }
        let site = call.request.site
        do throws(TransportError) {
            let line = try take(site)
            let outcome = line.transfer(call)
            // Before the caller continues, so that its next request finds the connection.
            giveBack(line, site)
            if let outcome { call.finish(outcome) }
        } catch {
            call.finish(.failure(error))
        }
    }

    /// Returns the line that was last used for this server, or else the oldest of many idle ones, or a new one.
    private func take(_ site: Substring) throws(TransportError) -> Line {
        let known: Line? = idle.withLock { idle in
            let index = idle.lastIndex { $0.site == site }
            if let index { return idle.remove(at: index).line }
            return idle.count < Self.enoughIdle ? nil : idle.removeFirst().line
        }
        if let known { return known }
        return try Line(library())
    }

    private func giveBack(_ line: Line, _ site: Substring) {
        let now = ContinuousClock.now
        // Closed when they are released, without the lock.
        let old = idle.withLock { idle in
            let count = idle.prefix { $0.since + Self.idleTime < now }.count
            let old = Array(idle.prefix(count))
            idle.removeFirst(count)
            idle.append(Idle(line: line, site: String(site), since: now))
            return old
        }
        withExtendedLifetime(old) {}
    }

    func closeIdle() {
        let old = idle.withLock { idle in
            let old = idle
            idle = []
            return old
        }
        withExtendedLifetime(old) {}
    }
}
