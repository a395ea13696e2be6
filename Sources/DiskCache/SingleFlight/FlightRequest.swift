// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// What one call asks for, about one key.
struct FlightRequest<Source: FlightSource, Failure: Error>: Sendable {
    typealias Value = Source.Value
    typealias Hit = CacheHit<Source.Value>
    /// nil: there is no value.
    typealias End = Result<Hit?, FlightFailure<Failure>>
    typealias Work = FlightWork<Source.Value, Failure>
    typealias AsyncWork = AsyncFlightWork<Source.Value, Failure>

    let source: Source
    var key: String
    /// How to store a value that comes without terms of its own.
    let terms: PutOptions
    let options: ReadOptions
    let kind: FlightCourse.Kind
    /// What was stored before this moment is too old.
    let oldest: Timestamp?
    /// When to wait no more for somebody else's computation; nil: the limit counts from when the waiting begins.
    var deadline: ContinuousClock.Instant?
    /// When to wait no more for other machines; nil: the limit for that counts from when they are asked.
    var askingEnd: ContinuousClock.Instant?

    /// A request for the value of `key`, to be stored on these terms if it is computed.
    init(
        _ source: Source,
        _ key: String,
        _ terms: PutOptions,
        _ options: ReadOptions,
        _ kind: FlightCourse.Kind = .value
    ) {
        self.source = source
        self.key = key
        self.terms = terms
        self.options = options
        self.kind = kind
        if options.recomputes {
            // What is there now was stored before; a record knows the millisecond only.
            oldest = source.cache.now.advanced(byNanoseconds: 1)
        } else {
            oldest = options.maximumAge == nil ? nil : options.oldest(at: source.cache.now)
        }
    }

    /// How it ends, on the calling thread.
    func end(_ work: Work) -> End {
        guard isOwn else { return unshared(work.run(Computation(of: key), terms)) }
        let hit = firstLook()
        var course = FlightCourse(kind)
        course.proceed(verdict(on: hit))
        if let hit, course.action == .finish { return .success(hit) }
        if hit == nil, remembersNothing() { return .success(nil) }
        var flight = Flight(self, course, hit)
        let end = flight.run(work)
        if case .failure(.timedOut) = end { return .failure(.timedOut(holder())) }
        return end
    }

    /// How it ends; no thread is blocked.
    func end(_ work: AsyncWork) async -> End {
        guard isOwn else { return unshared(await work.run(Computation(of: key), terms)) }
        var hit: Hit?
        if !options.recomputes {
            do throws(CacheError) {
                hit = try await source.get(forKey: key, reading: .here(acceptsStale: allowsStale))
            } catch {
                source.cache.count(.cacheFailure)
            }
        }
        var course = FlightCourse(kind)
        if let hit, hit.isStale {
            course.proceed(await offload { verdict(on: hit) })
        } else {
            course.proceed(verdict(on: hit))
        }
        if let hit, course.action == .finish { return .success(hit) }
        if hit == nil, takesNothing, await offload(on: .reading, { remembersNothing() }) {
            return .success(nil)
        }
        var flight = Flight(self, course, hit)
        let end = await flight.run(work)
        if case .failure(.timedOut) = end {
            return .failure(.timedOut(await offload(on: .reading) { holder() }))
        }
        return end
    }

    /// False in a child of the process that has opened the cache: computations that were under way there don't
    /// exist here, and nothing of the cache belongs to this process.
    var isOwn: Bool { source.cache.core.isOwn }

    /// The process that is computing the value, if it is known.
    func holder() -> ComputingProcess? {
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

    /// What is there when the call begins.
    func firstLook() -> Hit? {
        if options.recomputes { return nil }
        return withoutFailing { () throws(CacheError) in
            try source.get(forKey: key, reading: .here(acceptsStale: allowsStale))
        }
    }

    /// Whether a stale value is of use at the first look.
    private var allowsStale: Bool { options.acceptsStale || options.staleWhileRevalidate > .zero }

    /// Whether it is an answer that there is no value.
    var takesNothing: Bool { kind != .value }

    /// Whether it was noted that there is no value, and that is an answer.
    func remembersNothing() -> Bool {
        guard takesNothing else { return false }
        let noted = withoutFailing { () throws(CacheError) in try source.cache.nothing(forKey: key) }
        return noted.map { isYoungEnough($0) } ?? false
    }

    /// What somebody else has stored since the first look, which has counted the miss already; nil: nothing.
    func storedMeanwhile() -> End? {
        let hit = withoutFailing { () throws(CacheError) -> Hit? in
            guard try source.cache.isWorthGetting(key) else { return nil }
            if let hit = try source.get(forKey: key, reading: .here()) { return hit }
            try source.removeRejected(forKey: key)
            return nil
        }
        if let hit, isYoungEnough(hit.created) { return .success(hit) }
        return hit == nil && remembersNothing() ? .success(nil) : nil
    }

    /// What another machine has, where that may be of use; asked by the leader of a flight alone, before it
    /// computes.
    func sharedByOthers() -> End? {
        if options.recomputes || options.source == .memory || !options.asksRemote { return nil }
        let hit = source.cache.findRemotely(key, source.codec, until: askingEnd)
        guard let hit, isYoungEnough(hit.created) else { return nil }
        return .success(hit)
    }

    /// What a computation may go by: the value that is there, good or not; and the key's generation from before that was
    /// looked for.
    func previous() -> (generation: Generation?, hit: Hit?) {
        let generation = source.cache.core.store.generation(of: source.cache.name(ofKey: key))
        let hit = withoutFailing { () throws(CacheError) -> Hit? in
            guard try source.cache.isWorthGetting(key, allowingStale: true) else { return nil }
            return try source.get(forKey: key, reading: .here(acceptsStale: true))
        }
        return (generation, hit)
    }

    /// The old value, because there is no better one.
    func lastResort() -> Hit? {
        guard options.staleIfError > .zero else { return nil }
        let hit = withoutFailing { () throws(CacheError) in
            try source.get(forKey: key, reading: .here(acceptsStale: true))
        }
        guard let hit else { return nil }
        if hit.isStale { return isExpired(hit.entry, forLessThan: options.staleIfError) ? hit : nil }
        // It has not expired: it was too old for this call, or was to be replaced.
        guard let age = options.maximumAge else { return hit }
        return source.cache.now < hit.created + max(.zero, age) + options.staleIfError ? hit : nil
    }

    // MARK: Judgement

    /// How this request may use the value that was found.
    ///
    /// If it has expired and accesses extend it, this publishes a put that is waiting, and reads from disk.
    func verdict(on hit: Hit?) -> FlightCourse.Event {
        guard let hit, !hit.held.record.isOlder(than: oldest) else { return .miss }
        guard hit.isStale else {
            guard options.earlyRefresh > 0 else { return .hit }
            let now = source.cache.now
            return EarlyRefresh.isDue(hit.held.record, beta: options.earlyRefresh, now: now)
                ? .agingHit : .hit
        }
        if options.staleWhileRevalidate > .zero,
            isExpired(hit.entry, forLessThan: options.staleWhileRevalidate)
        {
            return .agingHit
        }
        return options.acceptsStale ? .hit : .miss
    }

    /// Whether what was stored at that moment is of use to this request; where it asks for another value, whether it was
    /// stored since this request began.
    private func isYoungEnough(_ created: Timestamp) -> Bool {
        guard let oldest else { return true }
        // What lies in the future was stored before the clock was put back, whenever that was.
        return created >= oldest && !(options.recomputes && created > source.cache.now)
    }

    /// Whether what the leader of a flight has to give is of use: it was computed since this has joined, or is not too
    /// old.
    func accepts(_ hit: Hit) -> Bool {
        hit.source == .computed || !hit.held.record.isOlder(than: oldest)
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
    func isRefreshed(since seen: Hit) -> Bool {
        let entry = withoutFailing { () throws(CacheError) in try source.cache.entry(forKey: key) }
        guard let entry else { return false }
        return entry.created != seen.created.date
            || entry.digest != seen.held.makeRecord().content.digest
    }
}

extension Computation {
    /// One that knows of nothing but the key.
    init(of key: String) {
        self.init(key: key, reason: .absent, previous: nil)
    }
}
