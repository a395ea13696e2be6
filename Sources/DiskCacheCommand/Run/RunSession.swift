// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// One execution of `run`: a single flight whose computation is the command.
struct RunSession: ~Copyable {
    private let order: RunOrder
    /// The cache; nil if it is unusable, which was already reported.
    private let cache: SharedCache?
    /// Restarts this process with access to other machines if needed; called before the command runs, because another
    /// machine may have the result.
    private let share: () -> Void
    private var course: FlightStateMachine
    private var lock: FlightLock?
    private var waiting: RunWaiting?
    /// The outcome of the command; nil if the command did not run.
    private var outcome: RunningCommand.Outcome?
    /// The recording of the output; nil if the result will not be stored.
    private var recorder: Recorder?
    private var computeTime = Duration.zero
    /// Why the wait ended without a result; nil if it did not.
    private var hindrance: Failure?
    /// How this process must end.
    private var end = SpawnedProcess.End.exited(0)

    init(
        _ kind: FlightStateMachine.Kind,
        _ order: RunOrder,
        _ cache: SharedCache?,
        share: @escaping () -> Void
    ) {
        self.order = order
        self.cache = cache
        self.share = share
        course = FlightStateMachine(kind)
    }

    /// Returns the stored result or runs the command; returns how this process must end.
    ///
    /// - Parameter renew: Starts the renewal of a stale result.
    mutating func run(renew: (SharedCache) -> Void) throws -> SpawnedProcess.End {
        while course.action != .finish {
            if course.action == .refresh, let cache { renew(cache) }
            do {
                course.proceed(try carryOut())
            } catch {
                // A part of the result may already have been written, or the command may have run.
                if error is Failure || course.action == .compute || course.kind == .refresh { throw error }
                Notice.warnUncached(error)
                lock = nil
                course.proceed(.unavailable)
            }
        }
        if let hindrance { throw hindrance }
        if let failure = outcome?.outputFailure {
            throw Failure(.inputOutput, "run: write the output: \(failure): check its destination")
        }
        return end
    }

    private mutating func carryOut() throws -> FlightStateMachine.Event {
        switch (course.action, cache) {
        case (.look, let cache?): return try replay(from: cache)
        case (.attempt, let cache?): return try attempt(cache)
        case (.pause, let cache?): return try pause(cache)
        case (.lookAgain, let cache?): return try lookAgain(in: cache)
        case (.store, let cache?): return store(in: cache) ? .stored : .unstored
        case (.look, nil), (.attempt, nil), (.pause, nil), (.lookAgain, nil): return .unavailable
        case (.store, nil): return .stored
        case (.compute, _): return try compute()
        case (.release(let isStored), _): lock?.release(isStored: isStored)
        // Only one caller exists in this process, so it always leads.
        case (.enter, _), (.wait, _): return .leads
        // If the command fails, that failure is the result.
        case (.fallBack, _): return .miss
        case (.refresh, _), (.handOver, _), (.finish, _): break
        }
        return .done
    }

    // MARK: Using the cache

    private mutating func attempt(_ cache: SharedCache) throws -> FlightStateMachine.Event {
        if waiting == nil {
            let limit = order.waitLimit
            waiting = try doing("receive signals") { () throws(Errno) in try RunWaiting(within: limit) }
        }
        let lock = try lock ?? cache.flightLock(forKey: order.key)
        self.lock = lock
        return .attempted(try cache.attempt(lock))
    }

    private mutating func pause(_ cache: SharedCache) throws -> FlightStateMachine.Event {
        if waiting?.pauses == 0 { cache.count(.wait) }
        if waiting?.isOver ?? false {
            waiting = nil
            let words = RunWaiting.words(lock?.holder)
            hindrance = Failure(.temporary, "run: gave up \(words): try again, or increase --wait")
            return .timedOut
        }
        if waiting?.isSuspicious() ?? false, let holder = lock?.holder?.processIdentifier,
            ProcFiles.isAncestor(holder)
        {
            waiting = nil
            hindrance = Failure(
                .usage,
                "run: process \(holder) runs the same command and has started this one, so each would wait for the other: "
                    + "call the command itself, or use another --key"
            )
            return .timedOut
        }
        let received = try doing("wait for another process") { () throws(Errno) -> Signal? in
            guard let lock else { return nil }
            return try waiting?.pause(before: lock)
        }
        guard let signal = received else { return .done }
        waiting = nil
        end = .killed(signal)
        return .cancelled
    }

    private func lookAgain(in cache: SharedCache) throws -> FlightStateMachine.Event {
        if order.isForced { return .miss }
        guard try find(in: cache, body: { _ in })?.verdict == .fresh else { return .miss }
        // A background renewal has no caller that waits for output.
        return course.kind == .refresh ? .hit : .storedMeanwhile
    }

    private mutating func replay(from cache: SharedCache) throws -> FlightStateMachine.Event {
        // From here on, signals have their normal effect.
        waiting = nil
        if order.isForced { return .miss }
        do {
            guard let found = try find(in: cache, body: { try emit($0) }) else {
                share()
                return .miss
            }
            end = .exited(found.status)
            return found.verdict == .stale ? .agingHit : .hit
        } catch let error as Errno where error == .brokenPipe {
            // The command would have ended in the same way.
            end = .killed(.brokenPipe)
            return .hit
        }
    }

    /// Writes the output of a stored result.
    ///
    /// After the first byte, the command can't be run as a substitute, because its output would follow a part of the
    /// stored output.
    private func emit(_ descriptor: Int32) throws {
        if order.isSilent { return }
        do {
            _ = try Recording.parse(descriptor) { stream, bytes in
                do throws(Errno) {
                    try stream.write(bytes)
                } catch {
                    if error == .brokenPipe { throw error }
                    throw Failure(.inputOutput, "run: write the output: \(error): check its destination")
                }
            }
        } catch let error as Recording.Unreadable {
            throw Failure(.inputOutput, "run: read the result: \(error.reason): run `diskcache doctor`")
        }
    }

    private func find(
        in cache: SharedCache,
        body: (Int32) throws -> Void
    ) throws -> (verdict: RunOrder.Verdict, status: Int32)? {
        let reading = ReadOptions(acceptsStale: order.staleFor != nil)
        let found = try cache.withDescriptor(forKey: order.key, reading: reading) {
            descriptor,
            entry -> (verdict: RunOrder.Verdict, status: Int32)? in
            guard let status = try Recording.parse(descriptor) else { return nil }
            let verdict = order.judge(entry, status: status)
            if verdict == .useless { return nil }
            try body(descriptor)
            return (verdict, status)
        }
        return found ?? nil
    }

    // MARK: Running

    private mutating func compute() throws -> FlightStateMachine.Event {
        waiting = nil
        let signals: HeldSignals
        do throws(Errno) {
            signals = try HeldSignals(RunningCommand.heard)
        } catch {
            return computeUnheard(error)
        }
        if course.kind == .refresh { cache?.count(.refresh) }
        let began = ContinuousClock.now
        // Without the lock the result is not stored: the cache is unusable, or can't store it.
        var recorder = course.isHolding ? cache.map { Recorder(in: $0) } : nil
        let command: RunningCommand
        do throws(Errno) {
            command = try RunningCommand(order.words, isSilent: order.isSilent)
        } catch .tooManyOpenFiles, .tooManyOpenFilesInSystem {
            return computeUnheard(.tooManyOpenFiles)
        } catch {
            return unstartable(error)
        }
        cache?.count(.computation)
        let outcome: RunningCommand.Outcome
        do throws(Errno) {
            outcome = try command.follow(signals) { stream, bytes in recorder?.add(bytes, of: stream) }
        } catch {
            let advice = CacheError.advice(on: error)
            throw Failure(.inputOutput, "run: wait for the command and its output: \(error): \(advice)")
        }
        end = outcome.end
        self.outcome = outcome
        self.recorder = recorder.take()
        computeTime = ContinuousClock.now - began
        return .computed
    }

    /// Replaces this process by the command, because without a free descriptor or signals its output can't be recorded.
    private mutating func computeUnheard(_ error: Errno) -> FlightStateMachine.Event {
        Notice.warn(
            "the result is not stored: read the command's output: \(error): \(CacheError.advice(on: error))"
        )
        lock?.release(isStored: false)
        var request = SpawnRequest(bytes: order.words)
        request.input = .null
        if order.isSilent {
            request.output = .null
            request.errors = .null
        }
        request.searchesPath = true
        return unstartable(request.replaceProcess())
    }

    /// Reports why the command can't be started, with the exit statuses of env(1) and shells.
    private mutating func unstartable(_ error: Errno) -> FlightStateMachine.Event {
        let advice =
            switch error {
            case .noEntry: "check its name and $PATH"
            case .accessDenied, .notExecutable: "give a program that can be executed"
            default: "it was not run"
            }
        Notice.warn("\(String(decoding: order.words[0], as: UTF8.self)): \(error): \(advice)")
        end = .exited(error == .noEntry ? 127 : 126)
        return .failed
    }

    /// Stores the result if it may be stored; returns false if that fails.
    private mutating func store(in cache: SharedCache) -> Bool {
        guard let outcome, outcome.isComplete,
            case .exited(let status) = outcome.end,
            let options = order.options(status: status, computeTime: computeTime),
            let recorder = recorder.take()
        else { return true }
        do {
            try recorder.store(status, forKey: order.key, options: options)
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
