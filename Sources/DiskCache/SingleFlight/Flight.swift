// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// A request under way: carries out its course, step by step.
///
/// What the cache can't do never ends a request.
struct Flight<Source: FlightSource, Failure: Error>: Sendable {
    typealias Value = Source.Value
    typealias Request = FlightRequest<Source, Failure>

    /// How a request waits: for the leader of its process, or as leader for another process.
    struct Waiting {
        var deadline: ContinuousClock.Instant?
        var seat: FlightSeat?
        /// That of the seat in the table.
        var number: UInt64 = 0
        var backoff: Backoff?

        /// Whether there is no time left.
        var isOver: Bool { deadline.map { $0 <= .now } ?? false }
    }

    /// What was computed, and from what.
    struct Making {
        var previous: Request.Hit?
        /// The key's generation from before ``previous`` was looked for; nil where there is no control file.
        var generation: Generation?
        var made: Computed<Value>?
        var cost = Duration.zero
        /// How long to wait for room for it.
        var patience = Request.roomPatience
        /// Whether other machines were asked: once a call.
        var hasAskedOthers = false
        /// Whether it could not be stored, or was not to be.
        var isUnstored = false
        /// Whether somebody may have stored a newer value than the one that it ends with: then that is given to nobody
        /// else.
        var isOutdated = false
    }

    let request: Request
    private(set) var course: FlightCourse
    /// How it ends, as far as is known: what is handed over and returned.
    private(set) var end = Request.End.failure(.cancelled)
    /// The key of this process's flight.
    private let key: FlightKey
    private(set) var waiting = Waiting()
    private var lock: FlightLock?
    /// The value that is to be refreshed.
    private var aging: Request.Hit?
    var making = Making()

    /// What is to be done about what a request has found.
    init(_ request: Request, _ course: FlightCourse, _ hit: Request.Hit?) {
        self.request = request
        self.course = course
        key = FlightKey(digest: request.source.cache.name(ofKey: request.key), form: request.source.form)
        if let hit, course.action == .refresh {
            end = .success(hit)
            aging = hit
        }
    }

    private var cache: SharedCache { request.source.cache }
    private var flights: Flights { cache.flights }

    /// The key of the flight that it takes part in.
    ///
    /// Requests that have waited in vain have flights of their own.
    private var place: FlightKey {
        FlightKey(digest: key.digest, form: key.form, impatience: course.impatience)
    }

    /// Goes on to the next action.
    mutating func proceed(_ event: FlightCourse.Event) {
        switch event {
        case .timedOut: end = .failure(.timedOut(nil))
        case .cancelled: end = .failure(.cancelled)
        default: break
        }
        course.proceed(event)
    }

    /// Carries out the next action on the calling thread, unless it takes the caller's closure.
    mutating func carryOut() {
        proceed(outcome())
    }

    private mutating func outcome() -> FlightCourse.Event {
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
            // Nor is a file left open that was waited for: copies of this may last a moment longer.
            lock?.release()
            flights.end(place, with: making.isOutdated ? .failure(.cancelled) : end)
        case .fallBack:
            guard let hit = request.lastResort() else { return .miss }
            end = .success(hit)
            return .hit
        // Done before, or with the closure.
        case .look, .compute, .refresh, .finish: break
        }
        return .done
    }

    /// Closes the flight: a request that joins while this looks may have been made after the value was removed.
    private mutating func lookAgain() -> FlightCourse.Event {
        if let aging { return request.isRefreshed(since: aging) ? .hit : .miss }
        flights.table.withLock { $0.close(place) }
        var stored = request.storedMeanwhile()
        if stored == nil { stored = sharedByOthers() }
        guard let found = stored else { return .miss }
        end = found
        return .hit
    }

    /// What another machine has, which is stored by then.
    private mutating func sharedByOthers() -> Request.End? {
        if making.hasAskedOthers || cache.remote == nil { return nil }
        making.hasAskedOthers = true
        return request.sharedByOthers()
    }

    // MARK: Waiting

    private mutating func enter() -> FlightCourse.Event {
        if course.impatience == 0, let failure = rememberedFailure() { return failed(.computation(failure)) }
        waiting = Waiting(deadline: deadline)
        if flights.table.withLock({ $0.begin(place) }) { return .leads }
        let seat = FlightSeat()
        guard let number = flights.table.withLock({ $0.enter(place, seat) }) else { return .leads }
        waiting.seat = seat
        waiting.number = number
        cache.count(.wait)
        return .joined
    }

    /// Until when to wait from now on; nil: however long it takes.
    private var deadline: ContinuousClock.Instant? {
        if course.impatience == 0, let deadline = request.deadline { return deadline }
        return request.options.waitLimit.map { .now + .nanoseconds(max(0, $0.saturatingNanoseconds)) }
    }

    /// Waits on the seat, if there is one, without blocking the thread.
    func waitOffThread() async -> FlightSeat.Outcome? {
        await waiting.seat?.wait(until: waiting.deadline)
    }

    /// Takes the outcome of waiting.
    mutating func seated(_ outcome: FlightSeat.Outcome?) -> FlightCourse.Event {
        switch outcome {
        case .value(let answer):
            // All seats of one form are of one type; any other could only compute for itself.
            guard let answer = answer as? FlightAnswer<Value> else { return .leads }
            return joined(answer.hit)
        case .lead, nil: return .leads
        case .timedOut, .cancelled:
            flights.table.withLock { $0.leave(place, waiting.number) }
            if case .timedOut = outcome { return .timedOut }
            return .cancelled
        }
    }

    /// Takes what the leader of the flight has handed over.
    private mutating func joined(_ hit: Request.Hit?) -> FlightCourse.Event {
        guard let hit else {
            guard request.takesNothing else { return .miss }
            end = .success(nil)
            return .hit
        }
        guard request.accepts(hit) else { return .miss }
        end = .success(hit.source == .computed ? hit.joined : hit)
        return .hit
    }

    private mutating func attempt() -> FlightCourse.Event {
        let request = request
        let attempt = request.withoutFailing { () throws(CacheError) -> FlightLock.Attempt? in
            if lock == nil { lock = try cache.flightLock(forKey: request.key) }
            return try lock?.attempt()
        }
        return attempt.map(FlightCourse.Event.attempted) ?? .unavailable
    }

    /// How long to pause before the next attempt at the lock; nil: there is no time left.
    mutating func nextPause() -> Duration? {
        noteWait()
        var backoff = waiting.backoff ?? Backoff(upTo: FlightLock.longestPause)
        let pause = backoff.next()
        waiting.backoff = backoff
        guard let deadline = waiting.deadline else { return pause }
        let rest = deadline - .now
        return rest > .zero ? min(pause, rest) : nil
    }

    /// Counts that it waits for another process, once.
    mutating func noteWait() {
        if waiting.backoff != nil { return }
        cache.count(.wait)
        waiting.backoff = Backoff(upTo: FlightLock.longestPause)
    }

    // MARK: Computing

    /// Counts a computation that is to begin; false if one has failed a moment ago, which is its outcome.
    mutating func begin() -> Bool {
        if course.kind == .refresh { cache.count(.refresh) }
        if let failure = rememberedFailure() {
            proceed(failed(.computation(failure)))
            return false
        }
        cache.count(.computation)
        return true
    }

    /// Takes the outcome of the computation.
    mutating func computed(
        _ result: Result<Computed<Value>, Failure>,
        since start: ContinuousClock.Instant,
        isCancelled: Bool = false
    ) {
        // Forked by the computation.
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
            // That one caller gave up tells the others nothing.
            if !isCancelled, !(error is CancellationError) { remember(error) }
            proceed(failed(.computation(error)))
        }
    }

    private mutating func store() -> FlightCourse.Event {
        guard let made = making.made.take() else { return .unstored }
        // Once the value is stored others may remove it, and whoever asks after that must not be given it.
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
        // Who has joined since a newer value was stored must not be given the old one.
        making.isOutdated = !stored.isLatest && cache.core.store.isCurrent(making.generation) != true
        if request.options.failureMemory > .zero { flights.failures.withLock { $0.forget(key) } }
        return stored.isForAll ? .stored : .unstored
    }

    // MARK: Refreshing

    /// The flight that refreshes the value that was found; nil if there is one, or a computation has just failed.
    func refresh() -> Flight? {
        guard rememberedFailure() == nil, flights.table.withLock({ $0.begin(key) }) else { return nil }
        var refresh = self
        refresh.course = FlightCourse(.refresh)
        refresh.end = .failure(.cancelled)
        return refresh
    }

    // MARK: Failures

    /// The error of a computation that failed a moment ago, if it is one that this caller can throw.
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

    private mutating func failed(_ failure: FlightFailure<Failure>) -> FlightCourse.Event {
        end = .failure(failure)
        if course.kind == .refresh {
            // Nobody waits for this computation, so nobody would learn of it otherwise.
            cache.core.events.send(.refreshFailed(key: request.key, reason: failure.reason))
        }
        return .failed
    }
}
