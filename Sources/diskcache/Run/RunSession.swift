// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// One use of `run`: finds the result, or waits for who makes it, or makes it.
struct RunSession {
    let order: RunOrder
    /// nil: it can't be used, and somebody has been told.
    let cache: SharedCache?
    let sink: OutputSink

    init(_ order: RunOrder, _ cache: SharedCache?) {
        self.order = order
        self.cache = cache
        sink = OutputSink(isSilent: order.isSilent)
    }

    /// Replays the result or runs the command; how this process is to end.
    ///
    /// - Parameter renew: starts what renews a result that was stale.
    func run(renew: (SharedCache) -> Void) throws -> SpawnedProcess.End {
        switch try turn(renew) {
        case .served(let end): return end
        case .alone: return try execute(nil)
        case .first(let lock): return try execute(lock)
        }
    }

    /// Makes the result anew where it is stale and nobody else does, for nobody to see.
    func renew() throws -> SpawnedProcess.End {
        guard let cache else { return .exited(ExitStatus.temporary.rawValue) }
        var wait = try cache.flightWait(forKey: order.key)
        switch try cache.attempt(&wait) {
        case .held: return .exited(0)
        case .ended: return .exited(0)
        case .acquired(let lock):
            if try isFresh(in: cache) {
                lock.release()
                return .exited(0)
            }
            cache.count(.refresh)
            return try execute(lock)
        }
    }

    private func turn(_ renew: (SharedCache) -> Void) throws -> FlightTurn {
        guard let cache else { return .alone }
        do {
            while true {
                if !order.isForced, let end = try replay(from: cache, renew) { return .served(end) }
                let waiting = RunWaiting(order.key, cache) {
                    try !order.isForced && isFresh(in: cache)
                }
                if let turn = try waiting.turn() { return turn }
            }
        } catch let failure as Failure {
            // A part of the result may be out already.
            throw failure
        } catch {
            Notice.warnUncached(error)
            return .alone
        }
    }

    // MARK: Replaying

    /// nil for a miss.
    private func replay(
        from cache: SharedCache,
        _ renew: (SharedCache) -> Void
    ) throws -> SpawnedProcess.End? {
        let isStale: Bool
        var end: SpawnedProcess.End
        do {
            guard let found = try find(in: cache, body: { try emit($0) }) else { return nil }
            isStale = found.verdict == .stale
            end = .exited(found.status)
        } catch Recording.Failure.writing(.brokenPipe) {
            // The command would have ended so.
            return .killed(.brokenPipe)
        }
        if isStale { renew(cache) }
        return end
    }

    /// From the first byte on there is no way back to running the command: what comes from where nobody could tell.
    private func emit(_ recording: borrowing Recording) throws {
        do throws(Recording.Failure) {
            try recording.replay(to: sink)
        } catch {
            switch error {
            case .writing(.brokenPipe): throw error
            case .writing(let error):
                throw Failure(.inputOutput, "run: write the output: \(error): check where it goes")
            case .reading(let error):
                throw Failure(.inputOutput, "run: read the result: \(error): run `diskcache doctor`")
            }
        }
    }

    private func isFresh(in cache: SharedCache) throws -> Bool {
        try find(in: cache) { _ in }?.verdict == .fresh
    }

    private func find(
        in cache: SharedCache,
        body: (borrowing Recording) throws -> Void
    ) throws -> (verdict: RunOrder.Verdict, status: Int32)? {
        let allowingStale = order.staleFor != nil
        let found = try cache.withDescriptor(forKey: order.key, allowingStale: allowingStale) {
            descriptor,
            entry -> (verdict: RunOrder.Verdict, status: Int32)? in
            let recording = try Recording(descriptor)
            guard let status = try recording.status() else { return nil }
            let verdict = order.judge(entry, status: status)
            if verdict == .useless { return nil }
            try body(recording)
            return (verdict, status)
        }
        return found ?? nil
    }

    // MARK: Running

    private func execute(_ lock: consuming FlightLock?) throws -> SpawnedProcess.End {
        let signals: HeldSignals
        do throws(Errno) {
            signals = try HeldSignals(RunningCommand.heard)
        } catch {
            return executeUnheard(lock, error)
        }
        let began = ContinuousClock.now
        // Without a lock nothing is stored: the cache is out of order, or can't keep it.
        var recorder = lock == nil ? nil : cache.map { Recorder(in: $0) }
        let command: RunningCommand
        do throws(Errno) {
            command = try RunningCommand(order.words, sink)
        } catch .tooManyOpenFiles, .tooManyOpenFilesInSystem {
            return executeUnheard(lock, .tooManyOpenFiles)
        } catch {
            lock?.release()
            return unstartable(error)
        }
        cache?.count(.computation)
        let outcome = try command.follow(signals) { stream, bytes in
            recorder?.add(bytes, of: stream)
        }
        let cost = ContinuousClock.now - began
        if store(outcome, recorder.take(), cost) {
            lock?.release()
        } else {
            lock?.releaseUnstored()
        }
        guard let failure = outcome.outputFailure else { return outcome.end }
        throw Failure(.inputOutput, "run: write the output: \(failure): check where it goes")
    }

    /// Without a descriptor left its output can't be heard: it takes the place of this process.
    private func executeUnheard(_ lock: consuming FlightLock?, _ error: Errno) -> SpawnedProcess.End {
        Notice.warn("the result is not stored: \(error): close some files, or raise the limit (ulimit -n)")
        lock?.releaseUnstored()
        var request = SpawnRequest(bytes: order.words)
        request.input = .null
        if order.isSilent {
            request.output = .null
            request.errors = .null
        }
        request.searchesPath = true
        return unstartable(request.replaceProcess())
    }

    /// The exit statuses are those of env(1) and of shells.
    private func unstartable(_ error: Errno) -> SpawnedProcess.End {
        let advice =
            switch error {
            case .noEntry: "check its name and $PATH"
            case .accessDenied, .notExecutable: "name a program that can be executed"
            default: "it was not run"
            }
        Notice.warn("\(String(decoding: order.words[0], as: UTF8.self)): \(error): \(advice)")
        return .exited(error == .noEntry ? 127 : 126)
    }

    /// Stores what is to be stored; false: it could not be.
    private func store(
        _ outcome: RunningCommand.Outcome,
        _ recorder: consuming Recorder?,
        _ cost: Duration
    ) -> Bool {
        guard let cache, let recorder, outcome.isComplete, case .exited(let status) = outcome.end,
            let terms = order.terms(status: status, cost: cost)
        else { return true }
        do {
            try recorder.store(
                status,
                in: cache,
                forKey: order.key,
                expires: terms.expires,
                attributes: terms.attributes
            )
            return true
        } catch {
            let reason =
                (error as? CacheError)?.message
                ?? "write its output to \(cache.path): \(error): run `diskcache doctor`"
            Notice.warn("the result was not stored: \(reason)")
            return false
        }
    }
}
