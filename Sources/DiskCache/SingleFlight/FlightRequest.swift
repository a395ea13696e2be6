// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// One request for the value of one key, computed where it is not there: what its synchronous and its
/// asynchronous form have in common.
///
/// Look; join the flight of this process, or lead it; as leader get the lock among the processes; close the
/// flight and look again; compute; close it and store; release. What the cache can't do never ends a request.
struct FlightRequest<Source: FlightSource, Failure: Error>: Sendable {
    typealias Value = Source.Value

    /// How it ended.
    enum End: Sendable {
        case value(Value)
        case failed(Failure)
        /// Somebody else was not done in time.
        case timedOut
        /// The task was cancelled while it waited.
        case cancelled
    }

    /// What to do with a value that was found.
    enum Verdict {
        case use, useAndRefresh, compute
    }

    let source: Source
    let options: ComputeOptions
    /// How long to wait for somebody else's computation; nil: as long as it takes.
    let limit: Duration?
    /// Whether a limit that passes, or a cancellation while waiting, ends the request; otherwise it computes
    /// for itself then.
    let endsUncomputed: Bool

    var flights: Flights { source.cache.flights }
    var place: FlightKey { FlightKey(digest: Digest(ofKey: source.key), form: source.form) }
    var deadline: ContinuousClock.Instant? {
        limit.map { .now + .nanoseconds(max(0, $0.saturatingNanoseconds)) }
    }
    /// Whether a value that has expired can be of use at first sight.
    var allowsStale: Bool { options.staleWhileRevalidate > .zero }

    // MARK: The cache, without its errors

    /// What a failing cache gives: nothing, counted.
    func withoutFailing<Result>(_ body: () throws(CacheError) -> Result?) -> Result? {
        do throws(CacheError) {
            return try body()
        } catch {
            flights.count(.cacheFailure)
            return nil
        }
    }

    /// The value that somebody else has stored since the first look, which has counted the miss already.
    ///
    /// Closes the flight at `place`: who joins it while this looks may ask after the value was removed.
    func lookAgain(leading place: FlightKey) -> FlightHit<Value>? {
        flights.close(place)
        return withoutFailing { () throws(CacheError) in
            guard try source.cache.isWorthGetting(source.key) else { return nil }
            return try source.lookup(allowingStale: false)
        }
    }

    /// Keeps a computed value; false where that can't be done, and others will hardly be able to.
    ///
    /// For room it waits a second at most: the caller wants the value, and it is there. Where it takes longer than a
    /// moment the lock is given back first, so that nobody in another process waits for that.
    private func store(_ value: Value, cost: Duration, _ approach: FlightApproach?) -> Bool {
        let patience = min(source.cache.configuration.roomPatience, Self.roomPatience)
        let room = RoomTerms(patience: patience) { approach?.release(isStored: false) }
        do throws(CacheError) {
            try source.store(value, cost: cost, for: options, room)
            return true
        } catch {
            flights.count(.cacheFailure)
            // This cache was closed meanwhile; those of others are not.
            return error.code == .closed
        }
    }

    /// How long to wait for room: with what else storing takes less than a second.
    private static var roomPatience: Duration { .milliseconds(800) }

    /// The value that has expired, for want of a better one.
    func lastResort() -> Value? {
        guard options.staleIfError > .zero else { return nil }
        let hit = withoutFailing { () throws(CacheError) in try source.lookup(allowingStale: true) }
        guard let hit, !hit.isStale || isExpired(hit.entry, forLessThan: options.staleIfError) else {
            return nil
        }
        return hit.value
    }

    // MARK: Judgement

    func verdict(on hit: FlightHit<Value>) -> Verdict {
        guard hit.isStale else {
            guard options.earlyRefresh > 0 else { return .use }
            let now = source.cache.now
            return EarlyRefresh.isDue(hit.entry, beta: options.earlyRefresh, now: now) ? .useAndRefresh : .use
        }
        return isExpired(hit.entry, forLessThan: options.staleWhileRevalidate) ? .useAndRefresh : .compute
    }

    private func isExpired(_ entry: CacheEntry, forLessThan span: Duration) -> Bool {
        var expires = entry.expires
        if entry.extendsOnAccess != nil {
            // Accesses have moved the end, and only the entry's file tells how far.
            let whole = withoutFailing { () throws(CacheError) in
                try source.cache.entry(forKey: source.key, allowingStale: true)
            }
            expires = whole?.expires ?? expires
        }
        guard let expires else { return true }
        return source.cache.now < Timestamp(expires) + span
    }

    /// Whether somebody has stored a newer value than the one that was to be refreshed.
    func isRefreshed(since seen: CacheEntry) -> Bool {
        let entry = withoutFailing { () throws(CacheError) in
            try source.cache.entry(forKey: source.key, allowingStale: false)
        }
        guard let entry else { return false }
        return entry.created != seen.created || entry.digest != seen.digest
    }

    // MARK: Failures

    /// The error of a computation that failed a moment ago, if it is one that this caller can throw.
    func rememberedFailure() -> Failure? {
        guard options.failureMemory > .zero else { return nil }
        let error = flights.error(of: place, within: options.failureMemory, now: source.cache.now)
        return error as? Failure
    }

    func noteFailure(_ error: Failure, isCancelled: Bool) {
        flights.count(.computeFailure)
        // That one caller gave up tells the others nothing.
        guard options.failureMemory > .zero, !isCancelled, !(error is CancellationError) else { return }
        flights.note(error, of: place, for: options.failureMemory, now: source.cache.now)
    }

    /// Tells of a computation in the background that failed: nobody waits for it who would learn it else.
    func report(_ end: End) -> End {
        if case .failed(let error) = end {
            source.cache.core.events.send(.refreshFailed(key: source.key, reason: "\(error)"))
        }
        return end
    }

    // MARK: Steps that both forms share

    /// How long to pause before the next attempt at the lock; nil: there is no time left.
    func pause(_ backoff: inout Backoff, before deadline: ContinuousClock.Instant?) -> Duration? {
        var generator = SystemRandomNumberGenerator()
        let pause = backoff.next(using: &generator)
        guard let deadline else { return pause }
        let rest = deadline - .now
        return rest > .zero ? min(pause, rest) : nil
    }

    /// Ends the flight that this request has led.
    func conclude(_ place: FlightKey, _ end: End) {
        guard source.cache.core.isOwn else { return }
        if case .value(let value) = end {
            flights.end(place, with: value)
        } else {
            flights.handOver(place)
        }
    }

    /// What a computation that ended leaves to be done; `led` is the flight that it was for, if any.
    func settle(
        _ value: Value,
        since start: ContinuousClock.Instant,
        _ approach: FlightApproach?,
        leading led: FlightKey?
    ) -> End {
        // Forked by the computation: nothing of the cache is this process's.
        guard source.cache.core.isOwn else { return .value(value) }
        // Once the value is stored others may remove it, and whoever asks after that must not be given it.
        if let led { flights.close(led) }
        let isStored = store(value, cost: .now - start, approach)
        approach?.release(isStored: isStored)
        if options.failureMemory > .zero { flights.forgetError(of: place) }
        return .value(value)
    }
}
