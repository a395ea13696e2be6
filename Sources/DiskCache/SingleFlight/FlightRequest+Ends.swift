// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

// Stores the outcome of a computation, and returns the outcome of a request to its caller.

/// The result of storing a computation's outcome.
struct StoredOutcome<Value: Sendable>: Sendable {
    /// The value for the callers; nil if the key has no value.
    let hit: CacheHit<Value>?
    /// Whether other processes find the result, or can still store one because only this cache was closed; false also if
    /// the result was not meant to be stored, or only in this process's memory.
    let isForAll: Bool
    /// Whether the result is newer than all stored values; false for a previous value that another writer may have
    /// replaced.
    var isLatest = true
}

extension FlightRequest {
    // MARK: Storing

    /// Stores the computed value and returns the value for the callers.
    ///
    /// If storing fails, other processes are unlikely to succeed. The wait for disk space is limited to `patience`,
    /// because the caller needs the value, which is available. If that wait takes longer than a moment, the lock is
    /// released, so that no other process waits for it.
    func store(
        _ made: Computed<Value>,
        instead previous: Hit?,
        cost: Duration,
        patience: Duration,
        holding lock: FlightLock?
    ) -> StoredOutcome<Value> {
        let patience = min(cache.configuration.roomPatience, patience)
        let wait = SpaceWait(patience: patience) { lock?.release(isStored: false) }
        do throws(CacheError) {
            switch made {
            case .value(let value, let asked):
                let terms = options.terms(usual(asked), computeTime: cost)
                // Written through even if puts are queued: if the value were not on disk after the flight, other callers
                // would compute it again.
                let held = try cache.keep(value, forKey: key, codec, terms, wait)
                return StoredOutcome(hit: computed(held), isForAll: isForAll(terms))
            case .unkept: return StoredOutcome(hit: unstored(made, previous), isForAll: false)
            case .unchanged(let asked):
                guard let previous else { return StoredOutcome(hit: nil, isForAll: false) }
                let (held, isLatest) = try renew(previous, asked, cost, wait)
                return StoredOutcome(hit: computed(held), isForAll: isForAll(asked), isLatest: isLatest)
            case .nothing(let span):
                try cache.keepNothing(forKey: key, for: span, wait)
                return StoredOutcome(hit: nil, isForAll: true)
            }
        } catch {
            cache.count(.cacheFailure)
            let isPrevious = if case .unchanged = made { true } else { false }
            return StoredOutcome(
                hit: unstored(made, previous),
                // Only this cache was closed; other processes can still store values.
                isForAll: error.code == .closed,
                isLatest: !isPrevious
            )
        }
    }

    /// Returns whether other processes find a value that is stored with these options; if not, they need not look for it
    /// one after another.
    private func isForAll(_ terms: PutOptions) -> Bool {
        !cache.keepsInMemoryAlone(terms)
    }

    /// How long to wait for disk space, so that storing takes less than a second in total.
    static var roomPatience: Duration { .milliseconds(800) }

    /// Gives the previous value new options.
    ///
    /// If the previous value was removed, it is stored again. If another value has replaced it, that value stays.
    private func renew(
        _ previous: Hit,
        _ asked: PutOptions,
        _ cost: Duration,
        _ wait: SpaceWait
    ) throws(CacheError) -> (held: MemoryValue<Value>, isLatest: Bool) {
        let terms = options.terms(usual(asked).filled(from: previous.held.record), computeTime: cost)
        let value = previous.held.value
        let memory = cache.configuration.memory.terms(of: terms)
        // A value in memory alone has no record on disk.
        if memory.keeps != .memoryOnly {
            let old = previous.held.makeRecord()
            let size = old.content.length
            let renewed = try cache.renew(old, forKey: key, terms, wait) { (record) -> MemoryValue<Value> in
                let cost = memory.cost ?? codec.cost(of: value, encodedSize: size)
                return MemoryValue(
                    value,
                    key: key,
                    in: cache.space,
                    form: ObjectIdentifier(Codec.self),
                    record: record,
                    cost: cost
                )
            }
            if let renewed { return renewed }
        }
        return (try cache.keep(value, forKey: key, codec, terms, wait), true)
    }

    /// Returns the closure's options, or the request's if the closure gave none.
    private func usual(_ asked: PutOptions) -> PutOptions { asked == PutOptions() ? terms : asked }

    private func computed(_ held: MemoryValue<Value>) -> Hit {
        CacheHit(held, from: .computed, isStale: false, at: cache.now)
    }

    /// Returns the hit for an outcome that is not stored.
    private func unstored(_ made: Computed<Value>, _ previous: Hit?) -> Hit? {
        switch made {
        case .nothing: return nil
        case .unchanged: return previous.map { computed($0.held) }
        case .value(let value, _), .unkept(let value):
            let now = cache.now
            let unknown = Content(digest: cache.name(ofKey: key), length: 0, checksum: 0)
            var terms = PutOptions()
            if case .value(_, let asked) = made { terms = usual(asked) }
            // Invalid options may be why storing failed, but they are no reason to lose the value.
            let record = try? cache.record(of: unknown, key: key, terms, now: now)
            let draft = record ?? Record(content: unknown, created: now)
            return computed(UnstoredValue(value, key: key, in: cache.space, codec, draft: draft))
        }
    }

    /// Returns the outcome in a forked child of the process that opened the cache; the child stores and shares nothing.
    func unshared(_ result: Result<Computed<Value>, Failure>) -> End {
        switch result {
        case .success(.unchanged): .failure(.refused(nothingUnchanged))
        case .success(let made): .success(unstored(made, nil))
        case .failure(let error): .failure(.computation(error))
        }
    }

    /// The error for ``Computed/unchanged(_:)`` without a previous value.
    var nothingUnchanged: CacheError {
        CacheError(
            .invalidArgument,
            "keep the value of \(key): there is none: return one where `previous` is nil"
        )
    }
}

// MARK: `value`, which throws only the computation's error

extension FlightRequest {
    /// Returns the value, on the calling thread.
    func value(_ compute: @escaping @Sendable () throws(Failure) -> Value) throws(Failure) -> Value {
        switch end(Work.value(compute)) {
        case .success(let hit?): return hit.value
        case .failure(.computation(let error)): throw error
        case .success(nil), .failure: return try compute()
        }
    }

    /// Returns the value without blocking a thread.
    func value(
        _ compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        switch await end(AsyncWork.value(compute)) {
        case .success(let hit?): return hit.value
        case .failure(.computation(let error)): throw error
        case .success(nil), .failure: return try await compute()
        }
    }
}

// MARK: `hit`

extension FlightRequest where Failure == any Error {
    /// Creates a request whose closure decides the key's outcome.
    init<Source: KeyedCache>(_ source: Source, _ key: String, _ options: ReadOptions)
    where Source.Codec == Codec {
        self.init(source, key, nil, options, options.failsAtWaitLimit ? .valueInTime : .cancellable)
    }

    /// Returns the hit, on the calling thread.
    func hit(_ decide: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>) throws -> Hit? {
        if options.source != .anywhere { return found() }
        return try hit(at: end(Work.outcome(decide)))
    }

    /// Returns the hit without blocking a thread.
    func hit(
        _ decide: @escaping @Sendable (Computation<Value>) async throws -> Computed<Value>
    ) async throws -> Hit? {
        if options.source != .anywhere { return await foundOffThread() }
        return try hit(at: await end(AsyncWork.outcome(decide)))
    }

    /// Returns the stored value for a request that must not compute.
    private func found() -> Hit? {
        guard isOwn else { return nil }
        return withoutFailing { () throws(CacheError) in try cache.find(key, codec, options) }
    }

    private func foundOffThread() async -> Hit? {
        guard isOwn else { return nil }
        do throws(CacheError) {
            return try await cache.find(key, codec, options)
        } catch {
            cache.count(.cacheFailure)
            return nil
        }
    }

    private func hit(at end: End) throws -> Hit? {
        switch end {
        case .success(let hit): return hit
        case .failure(let failure): throw failure.thrown(key)
        }
    }
}

extension FlightFailure {
    /// Returns the error that a call throws if it can throw any error.
    func thrown(_ key: String) -> any Error {
        switch self {
        case .computation(let error): error
        case .refused(let error): error
        case .cancelled: CancellationError()
        case .timedOut(let process):
            CacheError(
                .timedOut,
                "wait for the value of \(key): \(Self.words(process)): try again, or allow more time"
            )
        }
    }

    private static func words(_ process: ComputingProcess?) -> String {
        guard let process else { return "another caller computes it" }
        return "process \(process.processIdentifier) has been computing it since \(process.since)"
    }
}
