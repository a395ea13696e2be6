// SPDX-License-Identifier: Apache-2.0

import Platform

/// HTTP over libcurl, which is opened by the first call.
///
/// Transfers run on threads of their own, each with a handle whose connections stay open for the next request to the same
/// server. No thread of Swift's pool ever blocks. A child made by fork(2) has threads and connections of its own.
package final class Transport: Sendable {
    private let lines: PerProcess<Lines>

    /// - Parameters:
    ///   - mostTransfers: how many at once; more wait, within their limits.
    ///   - library: another one than the system's; for tests.
    package convenience init(mostTransfers: Int = 32) {
        self.init(mostTransfers: mostTransfers) { () throws(TransportError) in try Library.system.get() }
    }

    init(mostTransfers: Int, _ library: @escaping @Sendable () throws(TransportError) -> Library) {
        lines = PerProcess { Lines(limit: mostTransfers, library) }
    }

    /// Sends `request` and gives the response when its body has arrived.
    ///
    /// Cancelling the task ends it at once. What was written to a descriptor until an error stays there.
    package func perform(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try request.check()
        let call = Call(request)
        let outcome: Call.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Call.Outcome, Never>) in
                if call.start({ continuation.resume(returning: $0) }) { lines.value.run(call) }
            }
        } onCancel: {
            call.cancel()
        }
        return try outcome.get()
    }

    /// The same for threads that may block.
    @available(*, noasync)
    package func performAndWait(_ request: TransportRequest) throws(TransportError) -> TransportResponse {
        try request.check()
        let call = Call(request)
        let result = Monitored<Call.Outcome?>(nil)
        let starts = call.start { outcome in
            result.withLock { $0 = outcome }
            result.wakeAll()
        }
        if starts { lines.value.run(call) }
        guard let outcome = result.wait(for: { $0 }) else { throw call.timedOut }
        return try outcome.get()
    }

    /// Closes the connections that nobody uses.
    package func closeIdleConnections() {
        lines.value.closeIdle()
    }
}

/// The handles of a process, and the threads that they are used on.
private final class Lines: Sendable {
    private struct Idle {
        let line: Line
        let origin: Substring
        let since: ContinuousClock.Instant
    }

    /// Servers close what is idle for longer: nginx after 75 s.
    private static let idleTime: Duration = .seconds(60)
    /// From so many on one that knows another server is used before a further one is made.
    private static let enoughIdle = 8

    private let library: @Sendable () throws(TransportError) -> Library
    private let threads: ThreadPool
    private let idle = Locked<[Idle]>([])

    init(limit: Int, _ library: @escaping @Sendable () throws(TransportError) -> Library) {
        self.library = library
        threads = ThreadPool("diskcache-http", limit: limit)
    }

    func run(_ call: Call) {
        let work: ThreadPool.Work = { self.transfer(call) }
        if threads.runIfFree(work) { return }
        // In a queue nobody looks at the clock.
        if let deadline = call.deadline {
            Task {
                do {
                    try await Task.sleep(until: deadline, clock: .continuous)
                } catch {
                    // Nobody cancels it; if so, its line still keeps the deadline.
                    return
                }
                call.expire()
            }
        }
        threads.run(work)
    }

    private func transfer(_ call: Call) {
        guard !call.hasEnded else { return }
        let origin = call.request.origin
        do throws(TransportError) {
            let line = try take(origin)
            let outcome = line.transfer(call)
            // Before the caller goes on: its next request is to find the connection.
            giveBack(line, origin)
            if let outcome { call.finish(outcome) }
        } catch {
            call.finish(.failure(error))
        }
    }

    /// The one that was last used for this server; else one that is of no more use for others, or a new one.
    private func take(_ origin: Substring) throws(TransportError) -> Line {
        let known: Line? = idle.withLock { idle in
            let index = idle.lastIndex { $0.origin == origin }
            if let index { return idle.remove(at: index).line }
            return idle.count < Self.enoughIdle ? nil : idle.removeFirst().line
        }
        if let known { return known }
        return try Line(library())
    }

    private func giveBack(_ line: Line, _ origin: Substring) {
        let now = ContinuousClock.now
        // Closed by going, without the lock.
        let old = idle.withLock { idle in
            let count = idle.prefix { $0.since + Self.idleTime < now }.count
            let old = Array(idle.prefix(count))
            idle.removeFirst(count)
            idle.append(Idle(line: line, origin: origin, since: now))
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

extension TransportRequest {
    /// Scheme, server and port.
    fileprivate var origin: Substring {
        let place = self.place
        guard let scheme = place.firstRange(of: "://") else { return place[...] }
        let end = place[scheme.upperBound...].firstIndex(of: "/") ?? place.endIndex
        return place[..<end]
    }
}
