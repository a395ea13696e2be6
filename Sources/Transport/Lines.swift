// SPDX-License-Identifier: Apache-2.0

import Platform

/// The handles of a process, and the threads that they are used on.
final class Lines: Sendable {
    private struct Idle {
        let line: Line
        let site: String
        let since: ContinuousClock.Instant
    }

    /// Servers close what is idle for longer: nginx after 75 s.
    private static let idleTime: Duration = .seconds(60)
    /// From so many on one that knows another server is used before a further one is made.
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

    /// Has a thread do what `call` asks for, when it is its turn.
    func run(_ call: Call) {
        guard queue.withLock({ $0.begin(call.request.site, call) }) else { return call.setAlarm() }
        var next: Call? = call
        while let call = next {
            let work: ThreadPool.Work = { self.serve(call) }
            if threads.runIfFree(work) { return }
            call.setAlarm()
            if threads.runOnThread(work) { return }
            call.finish(.failure(call.noThread))
            next = end(call)
        }
    }

    /// Does what `call` asks for, and then what waits.
    private func serve(_ call: Call) {
        var next: Call? = call
        while let call = next {
            transfer(call)
            next = end(call)
        }
    }

    /// Its turn is over; gives the one whose turn it is now.
    private func end(_ call: Call) -> Call? {
        queue.withLock { queue in
            queue.end(call.request.site)
            return queue.next()
        }
    }

    /// Does what `call` asks for in the calling thread.
    func perform(_ call: Call) throws(TransportError) -> TransportResponse {
        let site = call.request.site
        let line = try take(site)
        line.forgetWakes()
        let outcome = Result { () throws(TransportError) in try line.perform(call) }
        let letGo: ThreadPool.Work = {
            line.end()
            self.giveBack(line, site)
        }
        // Whose time is over does not wait for the resolver of names.
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
            // Before the caller goes on: its next request is to find the connection.
            giveBack(line, site)
            if let outcome { call.finish(outcome) }
        } catch {
            call.finish(.failure(error))
        }
    }

    /// The one that was last used for this server; else one that is of no more use for others, or a new one.
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
        // Closed by going, without the lock.
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
