// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// A request in progress, which carries out its course step by step.
///
/// A failure of the cache never makes a request fail.
struct Flight<Codec: CacheCodec, Failure: Error>: Sendable {
    typealias Value = Codec.Value
    typealias Request = FlightRequest<Codec, Failure>

    /// The state of a request's wait: for the leader of its flight or, if it is the leader, for another process.
    struct Waiting {
        var deadline: ContinuousClock.Instant?
        var seat: FlightWaiter?
        /// The seat's number in the table.
        var number: UInt64 = 0
        var backoff: Backoff?

        /// Whether the deadline has passed.
        var isOver: Bool { deadline.map { $0 <= .now } ?? false }
    }

    /// The input and the result of a computation.
    struct Making {
        var previous: Request.Hit?
        /// The key's generation, read before ``previous`` was looked up; nil without a control file.
        var generation: Generation?
        var made: Computed<Value>?
        var cost = Duration.zero
        /// How long to wait for disk space for the value.
        var patience = Request.roomPatience
        /// Whether remote servers were asked, which happens at most once per call.
        var hasAskedOthers = false
        /// Whether other processes can't find the result: storing failed, or was not intended.
        var isUnstored = false
        /// Whether another writer may have stored a newer value than the result; if so, no other request receives the
        /// result.
        var isOutdated = false
    }

    let request: Request
    private(set) var course: FlightStateMachine
    /// The result so far, to be returned and given to the requests that joined.
    private(set) var end = Request.End.failure(.cancelled)
    /// The key of the flight that a request joins before any of its waits has timed out.
    private let key: FlightKey
    private(set) var waiting = Waiting()
    private var lock: FlightLock?
    /// The value to refresh; nil unless this flight starts a refresh or is one.
    private var aging: Request.Hit?
    var making = Making()

    /// Creates the flight of a request whose first lookup returned `hit`.
    init(_ request: Request, _ course: FlightStateMachine, _ hit: Request.Hit?) {
        self.request = request
        self.course = course
        key = FlightKey(digest: request.cache.name(ofKey: request.key), form: ObjectIdentifier(Codec.self))
        if let hit, course.action == .refresh {
            end = .success(hit)
            aging = hit
        }
    }

    private var cache: SharedCache { request.cache }
    private var flights: Flights { cache.flights }

    /// The key of the flight that this request takes part in.
    ///
    /// Requests whose wait has timed out have separate flights.
    private var place: FlightKey {
        FlightKey(digest: key.digest, form: key.form, impatience: course.impatience)
    }

    /// Advances to the next action.
    mutating func proceed(_ event: FlightStateMachine.Event) {
        switch event {
        case .timedOut: end = .failure(.timedOut(nil))
        case .cancelled: end = .failure(.cancelled)
        default: break
        }
        course.proceed(event)
    }

    /// Carries out the next action on the calling thread; the action must not need the caller's closure.
    mutating func carryOut() {
        proceed(outcome())
    }

    private mutating func outcome() -> FlightStateMachine.Event {
        switch course.action {
        case .enter: return enter()
        case .wait: return seated(waiting.seat?.wait(until: waiting.deadline))
        case .attempt: return attempt()
        case .pause:
            guard let pause = nextPause() else { return .timedOut }
            sleepThread(for: pause)
        case .lookAgain: return lookAgain()
        case .store: return store()
        case .release(let isStored): lock?.release(isStored: isStored)
        case .handOver:
            // Also closes the file of a lock that this flight only waited for: copies of this struct, which keep the file
            // open, may live a moment longer.
            lock?.release()
            flights.end(place, with: making.isOutdated ? .failure(.cancelled) : end)
        case .fallBack:
            guard let hit = request.lastResort() else { return .miss }
            end = .success(hit)
            return .hit
        // Done before the flight was created, or by `run`.
        case .look, .compute, .refresh, .finish: break
        }
        return .done
    }

    /// Closes the flight, then looks up the value again.
    ///
    /// The order matters: a request that joins during the lookup may have started after the value was removed, and must
    /// not receive it.
    private mutating func lookAgain() -> FlightStateMachine.Event {
        if let aging { return request.isRefreshed(since: aging) ? .hit : .miss }
        flights.table.withLock { $0.close(place) }
        var stored = request.storedMeanwhile()
        if stored == nil { stored = sharedByOthers() }
        guard let found = stored else { return .miss }
        end = found
        return .hit
    }

    /// Asks remote servers for the value, and stores it on this machine.
    private mutating func sharedByOthers() -> Request.End? {
        if making.hasAskedOthers || cache.remote == nil { return nil }
        making.hasAskedOthers = true
        return request.sharedByOthers()
    }

    // MARK: Waiting

    private mutating func enter() -> FlightStateMachine.Event {
        if course.impatience == 0, let failure = rememberedFailure() { return failed(.computation(failure)) }
        waiting = Waiting(deadline: deadline)
        if flights.table.withLock({ $0.begin(place) }) { return .leads }
        let seat = FlightWaiter()
        guard let number = flights.table.withLock({ $0.enter(place, seat) }) else { return .leads }
        waiting.seat = seat
        waiting.number = number
        cache.count(.wait)
        return .joined
    }

    /// The deadline of a wait that starts now; nil for no limit.
    private var deadline: ContinuousClock.Instant? {
        if course.impatience == 0, let deadline = request.deadline { return deadline }
        return request.options.waitLimit.map { .now + .nanoseconds(max(0, $0.saturatingNanoseconds)) }
    }

    /// Waits on the seat, if there is one, without blocking the thread.
    func waitOffThread() async -> FlightWaiter.Outcome? {
        await waiting.seat?.wait(until: waiting.deadline)
    }

    /// Processes the outcome of the wait.
    mutating func seated(_ outcome: FlightWaiter.Outcome?) -> FlightStateMachine.Event {
        switch outcome {
        case .value(let answer):
            // All requests in a flight have the same form and thus the same value type. Should the type differ, this
            // request computes the value.
            guard let answer = answer as? FlightAnswer<Value> else { return .leads }
            return joined(answer.hit)
        case .lead, nil: return .leads
        case .timedOut, .cancelled:
            flights.table.withLock { $0.leave(place, waiting.number) }
            if case .timedOut = outcome { return .timedOut }
            return .cancelled
        }
    }

    /// Processes the leader's result.
    private mutating func joined(_ hit: Request.Hit?) -> FlightStateMachine.Event {
        guard let hit else {
            guard request.takesNothing else { return .miss }
            end = .success(nil)
            return .hit
        }
        guard request.accepts(hit) else { return .miss }
        end = .success(hit.source == .computed ? hit.joined : hit)
        return .hit
    }

    private mutating func attempt() -> FlightStateMachine.Event {
        let request = request
        let attempt = request.withoutFailing { () throws(CacheError) -> FlightLock.Attempt? in
            if lock == nil { lock = try cache.flightLock(forKey: request.key) }
            return try lock?.attempt()
        }
        return attempt.map(FlightStateMachine.Event.attempted) ?? .unavailable
    }

    /// Returns the pause before the next attempt at the lock; nil if no time is left.
    mutating func nextPause() -> Duration? {
        noteWait()
        var backoff = waiting.backoff ?? Backoff(upTo: FlightLock.longestPause)
        let pause = backoff.next()
        waiting.backoff = backoff
        guard let deadline = waiting.deadline else { return pause }
        let rest = deadline - .now
        return rest > .zero ? min(pause, rest) : nil
    }

    /// Counts the wait for another process; further calls have no effect.
    mutating func noteWait() {
        if waiting.backoff != nil { return }
        cache.count(.wait)
        waiting.backoff = Backoff(upTo: FlightLock.longestPause)
    }

    // MARK: Computing

    /// Counts a computation that is about to start.
    ///
    /// - Returns: false if another computation of the value failed a moment ago; its error is then the outcome.
    mutating func begin() -> Bool {
        if course.kind == .refresh { cache.count(.refresh) }
        if let failure = rememberedFailure() {
            proceed(failed(.computation(failure)))
            return false
        }
        cache.count(.computation)
        return true
    }

    /// Processes the outcome of the computation.
    mutating func computed(
        _ result: Result<Computed<Value>, Failure>,
        since start: ContinuousClock.Instant,
        isCancelled: Bool = false
    ) {
        // The computation has forked, and this is the child.
        guard request.isOwn else {
            end = request.unshared(result)
            return
        }
        switch result {
        case .success(.unchanged) where making.previous == nil:
            cache.count(.computeFailure)
            proceed(failed(.refused(request.nothingUnchanged)))
        case .success(let made):
            making.made = made
            making.cost = .now - start
            proceed(.computed)
        case .failure(let error):
            cache.count(.computeFailure)
            // That a caller was cancelled does not show that the computation fails for others.
            if !isCancelled, !(error is CancellationError) { remember(error) }
            proceed(failed(.computation(error)))
        }
    }

    private mutating func store() -> FlightStateMachine.Event {
        guard let made = making.made.take() else { return .unstored }
        // As soon as the value is stored another caller may remove it; requests that start after the removal must not
        // receive it.
        if course.isLeading { flights.table.withLock { $0.close(place) } }
        let stored = request.store(
            made,
            instead: making.previous,
            cost: making.cost,
            patience: making.patience,
            holding: lock
        )
        end = .success(stored.hit)
        making.isUnstored = !stored.isForAll
        // Requests that joined after another writer stored a newer value must not receive the old one.
        making.isOutdated = !stored.isLatest && cache.core.store.isCurrent(making.generation) != true
        if request.options.failureMemory > .zero { flights.failures.withLock { $0.forget(key) } }
        return stored.isForAll ? .stored : .unstored
    }

    // MARK: Refreshing

    /// Returns the flight that refreshes the value; nil if a flight of the key is in progress, or if a computation failed
    /// a moment ago.
    func refresh() -> Flight? {
        guard rememberedFailure() == nil, flights.table.withLock({ $0.begin(key) }) else { return nil }
        var refresh = self
        refresh.course = FlightStateMachine(.refresh)
        refresh.end = .failure(.cancelled)
        return refresh
    }

    // MARK: Failures

    /// Returns the error of a computation that failed a moment ago; nil if there was none, or if this caller can't throw
    /// the error.
    private func rememberedFailure() -> Failure? {
        let span = request.options.failureMemory
        guard span > .zero else { return nil }
        let now = cache.now
        return flights.failures.withLock { $0.error(of: key, within: span, now: now) } as? Failure
    }

    private func remember(_ error: Failure) {
        let span = request.options.failureMemory
        guard span > .zero else { return }
        let now = cache.now
        flights.failures.withLock { $0.note(error, of: key, for: span, now: now) }
    }

    private mutating func failed(_ failure: FlightFailure<Failure>) -> FlightStateMachine.Event {
        end = .failure(failure)
        if course.kind == .refresh {
            // No caller waits for a refresh, so its failure is reported as an event.
            cache.core.events.send(.refreshFailed(key: request.key, reason: failure.reason))
        }
        return .failed
    }
}
