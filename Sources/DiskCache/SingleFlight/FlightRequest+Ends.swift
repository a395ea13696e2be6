// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

// What becomes of a computation's outcome, and what the calls make of a request's end.

/// The result of storing a computation's outcome.
struct StoredOutcome<Value: Sendable>: Sendable {
    /// The value for the callers; nil for none.
    let hit: CacheHit<Value>?
    /// Whether other processes find it: false also where it was not to be stored, or for this process alone.
    let isForAll: Bool
    /// Whether it takes the place of everything that was stored before; false where it is the previous value, in whose
    /// place somebody may have stored another one.
    var isLatest = true
}

extension FlightRequest {
    // MARK: Storing

    /// Stores the computed value, and returns the value for the callers.
    ///
    /// If storing has failed, others are unlikely to succeed. It waits no longer than `patience` for room, because the
    /// caller wants the value, which is there. If that takes longer than a moment, the lock is released first, so that
    /// nobody in another process waits for it.
    func store(
        _ made: Computed<Value>,
        instead previous: Hit?,
        cost: Duration,
        patience: Duration,
        holding lock: FlightLock?
    ) -> StoredOutcome<Value> {
        let patience = min(source.cache.configuration.roomPatience, patience)
        let room = RoomTerms(patience: patience) { lock?.release(isStored: false) }
        do throws(CacheError) {
            switch made {
            case .value(let value, let asked):
                let terms = options.terms(usual(asked), computeTime: cost)
                // Through in any case: others compute once the flight has ended and nothing is on disk.
                let held = try source.keep(value, forKey: key, terms, room)
                return StoredOutcome(hit: computed(held), isForAll: isForAll(terms))
            case .unkept: return StoredOutcome(hit: unstored(made, previous), isForAll: false)
            case .unchanged(let asked):
                guard let previous else { return StoredOutcome(hit: nil, isForAll: false) }
                let (held, isLatest) = try renew(previous, asked, cost, room)
                return StoredOutcome(hit: computed(held), isForAll: isForAll(asked), isLatest: isLatest)
            case .nothing(let span):
                try source.cache.keepNothing(forKey: key, for: span, room)
                return StoredOutcome(hit: nil, isForAll: true)
            }
        } catch {
            source.cache.count(.cacheFailure)
            let isPrevious = if case .unchanged = made { true } else { false }
            return StoredOutcome(
                hit: unstored(made, previous),
                // This cache was closed meanwhile; those of others are not.
                isForAll: error.code == .closed,
                isLatest: !isPrevious
            )
        }
    }

    /// Whether other processes find a value with these terms; else they need not look for it one after another.
    private func isForAll(_ terms: PutOptions) -> Bool {
        !source.cache.keepsInMemoryAlone(terms)
    }

    /// How long to wait for room: with what else storing takes less than a second.
    static var roomPatience: Duration { .milliseconds(800) }

    /// Gives the previous value other terms; where it is gone it is stored again, and where there is another one that
    /// stays.
    private func renew(
        _ previous: Hit,
        _ asked: PutOptions,
        _ cost: Duration,
        _ room: RoomTerms
    ) throws(CacheError) -> (held: HeldValue<Value>, isLatest: Bool) {
        let terms = options.terms(usual(asked).filled(from: previous.held.record), computeTime: cost)
        let (cache, value) = (source.cache, previous.held.value)
        let memory = cache.configuration.memory.terms(of: terms)
        // What is in memory alone has no record on disk.
        if memory.keeps != .memoryOnly {
            let old = previous.held.makeRecord()
            let size = old.content.length
            let renewed = try cache.renew(old, forKey: key, terms, room) { (record) -> HeldValue<Value> in
                let cost = memory.cost ?? source.codec.cost(of: value, encodedSize: size)
                return HeldValue(
                    value,
                    key: key,
                    in: cache.space,
                    form: source.form,
                    record: record,
                    cost: cost
                )
            }
            if let renewed { return renewed }
        }
        return (try source.keep(value, forKey: key, terms, room), true)
    }

    /// The options that were asked for, or those of the request where none were.
    private func usual(_ asked: PutOptions) -> PutOptions { asked == PutOptions() ? terms : asked }

    private func computed(_ held: HeldValue<Value>) -> Hit {
        CacheHit(held, from: .computed, isStale: false, at: source.cache.now)
    }

    /// What is given out of an outcome that is not stored.
    private func unstored(_ made: Computed<Value>, _ previous: Hit?) -> Hit? {
        switch made {
        case .nothing: return nil
        case .unchanged: return previous.map { computed($0.held) }
        case .value(let value, _), .unkept(let value):
            let (cache, now) = (source.cache, source.cache.now)
            let unknown = Content(digest: cache.name(ofKey: key), length: 0, checksum: 0)
            var terms = PutOptions()
            if case .value(_, let asked) = made { terms = usual(asked) }
            // Terms that can't be are no reason to lose the value: it was not stored because of them.
            let record = try? cache.record(of: unknown, key: key, terms, now: now)
            let draft = record ?? Record(content: unknown, created: now)
            return computed(UnstoredValue(value, key: key, in: cache.space, source.codec, draft: draft))
        }
    }

    /// How a request ends that shares nothing: in a child of the process that has opened the cache.
    func unshared(_ result: Result<Computed<Value>, Failure>) -> End {
        switch result {
        case .success(.unchanged): .failure(.refused(nothingUnchanged))
        case .success(let made): .success(unstored(made, nil))
        case .failure(let error): .failure(.computation(error))
        }
    }

    /// Why there can be no ``Computed/unchanged(_:)`` without a previous value.
    var nothingUnchanged: CacheError {
        CacheError(
            .invalidArgument,
            "keep the value of \(key): there is none: return one where `previous` is nil"
        )
    }
}

// MARK: `value`: the computation's error is the only one

extension FlightRequest {
    /// The value, on the calling thread.
    func value(_ compute: @escaping @Sendable () throws(Failure) -> Value) throws(Failure) -> Value {
        switch end(Work.value(compute)) {
        case .success(let hit?): return hit.value
        case .failure(.computation(let error)): throw error
        case .success(nil), .failure: return try compute()
        }
    }

    /// The value.
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
    /// A request whose closure decides what becomes of the key.
    ///
    /// - Parameter terms: how to store a value for which it gives none.
    init(_ source: Source, _ key: String, _ options: ReadOptions, usual terms: PutOptions = PutOptions()) {
        self.init(source, key, terms, options, options.failsAtWaitLimit ? .valueInTime : .cancellable)
    }

    /// The hit, on the calling thread.
    func hit(_ decide: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>) throws -> Hit? {
        if options.source != .anywhere { return found() }
        return try hit(at: end(Work.outcome(decide)))
    }

    /// The hit.
    func hit(
        _ decide: @escaping @Sendable (Computation<Value>) async throws -> Computed<Value>
    ) async throws -> Hit? {
        if options.source != .anywhere { return await foundOffThread() }
        return try hit(at: await end(AsyncWork.outcome(decide)))
    }

    /// What is there, where nothing is to be computed.
    private func found() -> Hit? {
        guard isOwn else { return nil }
        return withoutFailing { () throws(CacheError) in try source.get(forKey: key, reading: options) }
    }

    private func foundOffThread() async -> Hit? {
        guard isOwn else { return nil }
        do throws(CacheError) {
            return try await source.get(forKey: key, reading: options)
        } catch {
            source.cache.count(.cacheFailure)
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
    /// What a call throws that may throw anything.
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
