// SPDX-License-Identifier: Apache-2.0

import Platform

/// The libcurl sessions of a process, and the threads that use them.
final class CurlSessionPool: Sendable {
    private struct Idle {
        let session: CurlSession
        let site: String
        let since: ContinuousClock.Instant
    }

    /// Idle sessions are released after this time, because servers close idle connections too: nginx after 75 s.
    private static let idleTime: Duration = .seconds(60)
    /// If at least this many sessions are idle, a session of another server is used instead of a new one.
    private static let enoughIdle = 8

    private let library: @Sendable () throws(TransportError) -> LibCurl
    private let threads: ThreadPool
    private let idle = Locked<[Idle]>([])
    private let queue: Locked<TransferQueue<Transfer>>

    init(
        limit: Int,
        perServer limitPerServer: Int = .max,
        _ library: @escaping @Sendable () throws(TransportError) -> LibCurl
    ) {
        self.library = library
        queue = Locked(TransferQueue(limit: limit, perServer: limitPerServer))
        threads = ThreadPool("diskcache-http", limit: 2 * limit)
    }

    /// Runs `transfer` on a thread of the pool when it is its turn.
    func run(_ transfer: Transfer) {
        guard queue.withLock({ $0.begin(transfer.request.site, transfer) }) else {
            return transfer.setAlarm()
        }
        start(transfer)
    }

    /// Performs `transfer` on the calling thread if it is its turn now; otherwise returns nil.
    func performNow(_ transfer: Transfer) -> Transfer.Outcome? {
        guard queue.withLock({ $0.beginIfFree(transfer.request.site) }) else { return nil }
        let outcome = Result { () throws(TransportError) in try perform(transfer) }
        start(end(transfer))
        return outcome
    }

    /// Passes a transfer whose turn it is to a thread of the pool.
    private func start(_ transfer: Transfer?) {
        var next = transfer
        while let transfer = next {
            let work: ThreadPool.Work = { self.serve(transfer) }
            if threads.runIfFree(work) { return }
            transfer.setAlarm()
            if threads.runOnThread(work) { return }
            transfer.finish(.failure(transfer.noThread))
            next = end(transfer)
        }
    }

    /// Runs `transfer`, and then waiting transfers as long as it is the turn of one.
    private func serve(_ transfer: Transfer) {
        var next: Transfer? = transfer
        while let transfer = next {
            carryOut(transfer)
            next = end(transfer)
        }
    }

    /// Ends the turn of `transfer` and returns the transfer whose turn is next, or nil.
    private func end(_ transfer: Transfer) -> Transfer? {
        queue.withLock { queue in
            queue.end(transfer.request.site)
            return queue.next()
        }
    }

    /// Performs `transfer` on the calling thread.
    func perform(_ transfer: Transfer) throws(TransportError) -> TransportResponse {
        let site = transfer.request.site
        let session = try take(site)
        session.forgetWakes()
        let outcome = Result { () throws(TransportError) in try session.perform(transfer) }
        let letGo: ThreadPool.Work = {
            session.end()
            self.giveBack(session, site)
        }
        // `end` may wait for the name resolver, so after a timeout another thread calls it.
        if case .failure(let error) = outcome, error.code == .timedOut, threads.runOnThread(letGo) {
            throw error
        }
        letGo()
        return try outcome.get()
    }

    private func carryOut(_ transfer: Transfer) {
        guard !transfer.hasEnded else { return }
        let site = transfer.request.site
        do throws(TransportError) {
            let session = try take(site)
            let outcome = session.carryOut(transfer)
            // The session is given back before the caller continues, so that the caller's next request finds the
            // connection.
            giveBack(session, site)
            if let outcome { transfer.finish(outcome) }
        } catch {
            transfer.finish(.failure(error))
        }
    }

    /// Returns the idle session that was last used for this server; if there is none, the oldest of many idle ones, or a
    /// new one.
    private func take(_ site: Substring) throws(TransportError) -> CurlSession {
        let known: CurlSession? = idle.withLock { idle in
            let index = idle.lastIndex { $0.site == site }
            if let index { return idle.remove(at: index).session }
            return idle.count < Self.enoughIdle ? nil : idle.removeFirst().session
        }
        if let known { return known }
        return try CurlSession(library())
    }

    private func giveBack(_ session: CurlSession, _ site: Substring) {
        let now = ContinuousClock.now
        // Releasing old sessions closes them, which happens without the lock.
        let old = idle.withLock { idle in
            let count = idle.prefix { $0.since + Self.idleTime < now }.count
            let old = Array(idle.prefix(count))
            idle.removeFirst(count)
            idle.append(Idle(session: session, site: String(site), since: now))
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
