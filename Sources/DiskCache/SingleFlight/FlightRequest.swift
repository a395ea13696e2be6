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
    /// The full key.
    var key: String
    /// The key in the view that was called.
    let ownKey: String
    /// The options for a value that the closure returns without any.
    let terms: PutOptions
    let options: ReadOptions
    let kind: FlightStateMachine.Kind
    /// The time before which a stored value is too old; nil if none is.
    let oldest: Timestamp?
    /// The deadline of the wait for another caller's computation; nil if the limit counts from the start of the wait.
    var deadline: ContinuousClock.Instant?
    /// The deadline of the wait for remote servers; nil if the limit counts from the request to them.
    var askingEnd: ContinuousClock.Instant?

    /// Creates a request for the value of `key` in `view`, to be stored with these options if it is computed; nil for those
    /// of the view.
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
            // Makes all present values too old. The extra nanosecond covers a value of this millisecond, the resolution of
            // records.
            oldest = cache.now.advanced(byNanoseconds: 1)
        } else {
            oldest = options.maximumAge == nil ? nil : options.oldest(at: cache.now)
        }
    }

    /// Whether this process has opened the cache.
    ///
    /// In a forked child it is false: the parent's computations don't exist there, and nothing of the cache belongs to the
    /// child.
    var isOwn: Bool { cache.core.isOwn }

    /// Returns the process that is computing the value, if known.
    func holder() -> ComputingProcess? {
        withoutFailing { () throws(CacheError) in try cache.computingProcess(forKey: key) }
    }

    // MARK: Cache access without errors

    /// Returns the result of `body`; nil if the cache fails, which is counted.
    func withoutFailing<Result>(_ body: () throws(CacheError) -> Result?) -> Result? {
        do throws(CacheError) {
            return try body()
        } catch {
            cache.count(.cacheFailure)
            return nil
        }
    }

    /// Returns the stored value at the start of the call.
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

    /// Returns whether the key is recorded as having no value, and that is an acceptable outcome.
    func remembersNothing() -> Bool {
        guard takesNothing else { return false }
        let noted = withoutFailing { () throws(CacheError) in try cache.nothing(forKey: key) }
        return noted.map { isYoungEnough($0) } ?? false
    }

    /// Returns the value that another caller has stored since the first lookup, which has counted the miss already.
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
    /// A flight's leader calls this before it computes, and a batch for keys that it must not compute.
    func sharedByOthers() -> End? {
        if options.recomputes || !options.mayAskRemote { return nil }
        let hit = cache.findRemotely(key, codec, until: askingEnd)
        guard let hit, isYoungEnough(hit.created) else { return nil }
        return .success(hit)
    }

    /// Returns the stored value, valid or not, and the key's generation from before the lookup.
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
        // It has not expired: it was too old for this call, or was meant to be replaced.
        guard let age = options.maximumAge else { return hit }
        return cache.now < hit.created + max(.zero, age) + options.staleIfError ? hit : nil
    }

    // MARK: Judgement

    /// Returns how this request may use the value that was found.
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

    /// Returns whether a value stored at that time is usable; if this request recomputes, whether it was stored since the
    /// request began.
    private func isYoungEnough(_ created: Timestamp) -> Bool {
        guard let oldest else { return true }
        // A time in the future means that the clock was set back since; when the value was stored is then unknown.
        return created >= oldest && !(options.recomputes && created > cache.now)
    }

    /// Returns whether the leader's value is usable: it was computed since this request joined, or is not too old.
    func accepts(_ hit: Hit) -> Bool {
        hit.source == .computed || !hit.isOlder(than: oldest)
    }

    private func isExpired(_ entry: CacheEntry, forLessThan span: Duration) -> Bool {
        var expires = entry.expires
        if entry.extendsOnAccess != nil {
            // Accesses have extended the expiration, and only the entry's file shows how far.
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
