// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What one call of `value(forKey:orCompute:)` asks for.
struct FlightRequest<Source: FlightSource, Failure: Error>: Sendable {
    typealias Value = Source.Value
    typealias End = Result<Value, WaitError<Failure>>
    typealias Compute = @Sendable () throws(Failure) -> Value
    typealias AsyncCompute = @Sendable () async throws(Failure) -> Value

    let source: Source
    let key: String
    let terms: PutOptions
    let options: ReadOptions
    /// How long to wait for somebody else's computation; nil for as long as it takes.
    let limit: Duration?
    let kind: FlightCourse.Kind

    /// A request for the value of `key`, to be stored on these terms if it is computed.
    ///
    /// - Parameter limit: when to end without a value; nil for never, in which case `options` say when to
    ///   compute anyway.
    init(
        _ source: Source,
        _ key: String,
        _ terms: PutOptions,
        _ options: ReadOptions,
        within limit: Duration? = nil
    ) {
        self.source = source
        self.key = key
        self.terms = terms
        self.options = options
        self.limit = limit ?? options.waitLimit
        kind = limit == nil ? .value : .valueInTime
    }

    /// The value, on the calling thread; the computation's error is the only one.
    func value(_ compute: @escaping Compute) throws(Failure) -> Value {
        switch end(compute) {
        case .success(let value): return value
        case .failure(.computation(let error)): throw error
        case .failure: return try compute()
        }
    }

    /// The value; the computation's error is the only one.
    func value(_ compute: @escaping AsyncCompute) async throws(Failure) -> Value {
        switch await end(compute) {
        case .success(let value): return value
        case .failure(.computation(let error)): throw error
        case .failure: return try await compute()
        }
    }

    /// How it ends, on the calling thread.
    func end(_ compute: @escaping Compute) -> End {
        guard isOwn else { return Result(catching: compute).mapError { .computation($0) } }
        let hit = withoutFailing { () throws(CacheError) in
            try source.get(forKey: key, reading: ReadOptions(acceptsStale: allowsStale))
        }
        var course = FlightCourse(kind)
        course.proceed(verdict(on: hit))
        if let hit, course.action == .finish { return .success(hit.value) }
        var flight = Flight(self, course, hit)
        let end = flight.run(compute)
        if case .failure(.timedOut) = end { return .failure(.timedOut(holder())) }
        return end
    }

    /// How it ends; no thread is blocked.
    func end(_ compute: @escaping AsyncCompute) async -> End {
        guard isOwn else { return await Result(awaiting: compute).mapError { .computation($0) } }
        var hit: Source.Hit?
        do throws(CacheError) {
            hit = try await source.get(forKey: key, reading: ReadOptions(acceptsStale: allowsStale))
        } catch {
            source.cache.count(.cacheFailure)
        }
        var course = FlightCourse(kind)
        if let hit, hit.isStale {
            course.proceed(await offload { verdict(on: hit) })
        } else {
            course.proceed(verdict(on: hit))
        }
        if let hit, course.action == .finish { return .success(hit.value) }
        var flight = Flight(self, course, hit)
        let end = await flight.run(compute)
        if case .failure(.timedOut) = end {
            return .failure(.timedOut(await offload(on: .reading) { holder() }))
        }
        return end
    }

    /// False in a child of the process that has opened the cache: computations that were under way there don't
    /// exist here, and nothing of the cache belongs to this process.
    var isOwn: Bool { source.cache.core.isOwn }

    /// The process that is computing the value, if it is known.
    private func holder() -> ComputingProcess? {
        withoutFailing { () throws(CacheError) in try source.cache.computingProcess(forKey: key) }
    }

    // MARK: The cache, without its errors

    /// The answer of a cache that fails: nothing, and the failure is counted.
    func withoutFailing<Result>(_ body: () throws(CacheError) -> Result?) -> Result? {
        do throws(CacheError) {
            return try body()
        } catch {
            source.cache.count(.cacheFailure)
            return nil
        }
    }

    /// Whether a stale value is of use at the first look.
    var allowsStale: Bool { options.staleWhileRevalidate > .zero }

    /// The value that somebody else has stored since the first look, which has counted the miss already.
    func storedMeanwhile() -> Value? {
        let hit = withoutFailing { () throws(CacheError) -> Source.Hit? in
            guard try source.cache.isWorthGetting(key) else { return nil }
            return try source.get(forKey: key, reading: ReadOptions())
        }
        return hit?.value
    }

    /// The expired value, because there is no better one.
    func lastResort() -> Value? {
        guard options.staleIfError > .zero else { return nil }
        let hit = withoutFailing { () throws(CacheError) in
            try source.get(forKey: key, reading: ReadOptions(acceptsStale: true))
        }
        guard let hit, !hit.isStale || isExpired(hit.entry, forLessThan: options.staleIfError) else {
            return nil
        }
        return hit.value
    }

    /// Stores a computed value; false if that failed, and others are unlikely to succeed.
    ///
    /// It waits a second at most for room, because the caller wants the value, which is there. If that takes
    /// longer than a moment, the lock is released first, so that nobody in another process waits for it.
    func store(_ value: Value, cost: Duration, holding lock: FlightLock?) -> Bool {
        let terms = options.terms(terms, computeTime: cost)
        let patience = min(source.cache.configuration.roomPatience, Self.roomPatience)
        let room = RoomTerms(patience: patience) { lock?.release(isStored: false) }
        do throws(CacheError) {
            // Through in any case: others compute once the flight has ended and nothing is on disk.
            try source.putThrough(value, forKey: key, terms, room)
            return true
        } catch {
            source.cache.count(.cacheFailure)
            // This cache was closed meanwhile; those of others are not.
            return error.code == .closed
        }
    }

    /// How long to wait for room: with what else storing takes less than a second.
    private static var roomPatience: Duration { .milliseconds(800) }

    // MARK: Judgement

    /// How this request may use the value that was found.
    ///
    /// If it has expired and accesses extend it, this publishes a put that is waiting, and reads from disk.
    func verdict(on hit: Source.Hit?) -> FlightCourse.Event {
        guard let hit else { return .miss }
        guard hit.isStale else {
            guard options.earlyRefresh > 0 else { return .hit }
            let now = source.cache.now
            return EarlyRefresh.isDue(hit.entry, beta: options.earlyRefresh, now: now) ? .agingHit : .hit
        }
        return isExpired(hit.entry, forLessThan: options.staleWhileRevalidate) ? .agingHit : .miss
    }

    private func isExpired(_ entry: CacheEntry, forLessThan span: Duration) -> Bool {
        var expires = entry.expires
        if entry.extendsOnAccess != nil {
            // Accesses have moved the end, and only the entry's file tells how far.
            let whole = withoutFailing { () throws(CacheError) in
                try source.cache.entry(forKey: key, reading: ReadOptions(acceptsStale: true))
            }
            expires = whole?.expires ?? expires
        }
        guard let expires else { return true }
        return source.cache.now < Timestamp(expires) + span
    }

    /// Whether somebody has stored a newer value than the one that was to be refreshed.
    func isRefreshed(since seen: CacheEntry) -> Bool {
        let entry = withoutFailing { () throws(CacheError) in
            try source.cache.entry(forKey: key)
        }
        guard let entry else { return false }
        return entry.created != seen.created || entry.digest != seen.digest
    }
}
