// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// A call's request for one key.
struct FlightRequest<Codec: CacheCodec, Failure: Error>: Sendable {
    typealias Value = Codec.Value
    typealias Hit = CacheHit<Codec.Value>
    /// The outcome; a nil hit means that the key has no value.
    typealias End = Result<Hit?, FlightFailure<Failure>>
    typealias Work = FlightWork<Codec.Value, Failure>
    typealias AsyncWork = AsyncFlightWork<Codec.Value, Failure>

    let cache: SharedCache
    let codec: Codec
    /// The full key, with the view's prefix.
    var key: String
    /// The key that the caller passed to the view, without the view's prefix.
    let ownKey: String
    /// The options for a value that the closure returns without any.
    let terms: PutOptions
    let options: ReadOptions
    let kind: FlightStateMachine.Kind
    /// A value that was stored before this time is too old; nil if no value is.
    let oldest: Timestamp?
    /// The deadline of the wait for another caller's computation; nil if the limit counts from the start of the wait.
    var deadline: ContinuousClock.Instant?
    /// The deadline of the wait for remote servers; nil if the limit counts from the request to them.
    var askingEnd: ContinuousClock.Instant?

    /// Creates a request for the value of `key` in `source`.
    ///
    /// - Parameter terms: the options with which a computed value is stored; nil for the source's.
    init<Source: KeyedCache>(
        _ source: Source,
        _ key: String,
        _ terms: PutOptions?,
        _ options: ReadOptions,
        _ kind: FlightStateMachine.Kind = .value
    ) where Source.Codec == Codec {
        cache = source.cache
        codec = source.codec
        self.key = source.whole(key)
        ownKey = key
        self.terms = terms ?? source.options
        self.options = options
        self.kind = kind
        if options.recomputes {
            // Makes all present values too old. The extra nanosecond makes too old even a value that was stored in this
            // millisecond, the resolution of records.
            oldest = cache.now.advanced(byNanoseconds: 1)
        } else {
            oldest = options.maximumAge == nil ? nil : options.oldest(at: cache.now)
        }
    }

    /// Whether this process opened the cache.
    ///
    /// False in a forked child: the parent's computations don't exist there, and no part of the cache belongs to the
    /// child.
    var isOwn: Bool { cache.core.isOwn }

    /// Returns the process that is computing the value, if known.
    func holder() -> ComputingProcess? {
        withoutFailing { () throws(CacheError) in try cache.computingProcess(forKey: key) }
    }

    // MARK: Cache access without errors

    /// Returns the result of `body`; if the cache fails, counts the failure and returns nil.
    func withoutFailing<Result>(_ body: () throws(CacheError) -> Result?) -> Result? {
        do throws(CacheError) {
            return try body()
        } catch {
            cache.count(.cacheFailure)
            return nil
        }
    }

    /// Looks up the stored value at the start of the call; returns nil if the request recomputes.
    func firstLook() -> Hit? {
        if options.recomputes { return nil }
        return withoutFailing { () throws(CacheError) in
            try cache.find(key, codec, .here(acceptsStale: allowsStale))
        }
    }

    /// Whether the first lookup accepts a stale value.
    var allowsStale: Bool { options.acceptsStale || options.staleWhileRevalidate > .zero }

    /// Whether the absence of a value is an acceptable outcome.
    var takesNothing: Bool { kind != .value }

    /// Returns whether the key is recorded as having no value, and this outcome is acceptable.
    func remembersNothing() -> Bool {
        guard takesNothing else { return false }
        let noted = withoutFailing { () throws(CacheError) in try cache.nothing(forKey: key) }
        return noted.map { isYoungEnough($0) } ?? false
    }

    /// Returns the value, or its recorded absence, that another caller has stored since the first lookup; nil if there is
    /// none.
    ///
    /// Does not count another miss: the first lookup has counted it.
    func storedMeanwhile() -> End? {
        let hit = withoutFailing { () throws(CacheError) -> Hit? in
            guard try cache.isWorthGetting(key) else { return nil }
            if let hit = try cache.find(key, codec, .here()) { return hit }
            try cache.remove(key, rejectedBy: codec)
            return nil
        }
        if let hit, isYoungEnough(hit.created) { return .success(hit) }
        return hit == nil && remembersNothing() ? .success(nil) : nil
    }

    /// Asks remote servers for a usable value.
    ///
    /// A flight's leader calls this before it computes; a batch calls it for keys that it must not compute.
    func sharedByOthers() -> End? {
        if options.recomputes || !options.mayAskRemote { return nil }
        let hit = cache.findRemotely(key, codec, until: askingEnd)
        guard let hit, isYoungEnough(hit.created) else { return nil }
        return .success(hit)
    }

    /// Returns the stored value, fresh or stale, and the key's generation as of before the lookup.
    func previous() -> (generation: Generation?, hit: Hit?) {
        let generation = cache.core.store.generation(of: cache.name(ofKey: key))
        let hit = withoutFailing { () throws(CacheError) -> Hit? in
            guard try cache.isWorthGetting(key, allowingStale: true) else { return nil }
            return try cache.find(key, codec, .here(acceptsStale: true))
        }
        return (generation, hit)
    }

    /// Returns the old value as a fallback after a failure, if ``ReadOptions/staleIfError`` allows it.
    func lastResort() -> Hit? {
        guard options.staleIfError > .zero else { return nil }
        let hit = withoutFailing { () throws(CacheError) in
            try cache.find(key, codec, .here(acceptsStale: true))
        }
        guard let hit else { return nil }
        if hit.isStale { return isExpired(hit.entry, forLessThan: options.staleIfError) ? hit : nil }
        // The value has not expired: it was too old for this call, or the call was to replace it.
        guard let age = options.maximumAge else { return hit }
        return cache.now < hit.created + max(.zero, age) + options.staleIfError ? hit : nil
    }

    // MARK: Judgement

    /// Returns how this request may use the value that a lookup found.
    ///
    /// If the value has expired and accesses extend it, this publishes a pending put and reads from disk.
    func verdict(on hit: Hit?) -> FlightStateMachine.Event {
        guard let hit, !hit.isOlder(than: oldest) else { return .miss }
        guard hit.isStale else {
            guard options.earlyRefresh > 0 else { return .hit }
            let now = cache.now
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

    /// Returns whether a value that was stored at this time is usable; if this request recomputes, whether the value was
    /// stored after the request began.
    private func isYoungEnough(_ created: Timestamp) -> Bool {
        guard let oldest else { return true }
        // A time in the future means that the clock was set back since the value was stored. Whether that was after the
        // request began is then unknown.
        return created >= oldest && !(options.recomputes && created > cache.now)
    }

    /// Returns whether the leader's value is usable: it was computed after this request joined, or is not too old.
    func accepts(_ hit: Hit) -> Bool {
        hit.source == .computed || !hit.isOlder(than: oldest)
    }

    private func isExpired(_ entry: CacheEntry, forLessThan span: Duration) -> Bool {
        var expires = entry.expires
        if entry.extendsOnAccess != nil {
            // Accesses may have extended the expiration; only the entry's file shows how far.
            let whole = withoutFailing { () throws(CacheError) in
                try cache.entry(forKey: key, reading: ReadOptions(acceptsStale: true))
            }
            expires = whole?.expires ?? expires
        }
        guard let expires else { return true }
        return cache.now < Timestamp(expires) + span
    }

    /// Returns whether another writer has replaced the value that was to be refreshed.
    func isRefreshed(since seen: Hit) -> Bool {
        let entry = withoutFailing { () throws(CacheError) in try cache.entry(forKey: key) }
        guard let entry else { return false }
        return entry.created != seen.created.date
            || entry.digest != seen.held.makeRecord().content.digest
    }
}

extension Computation {
    /// Creates a computation that has only a key.
    init(of key: String) {
        self.init(key: key, reason: .absent, previous: nil)
    }
}
