// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// The flights of one call for many keys: one flight for each missing key, and one closure for all of them.
///
/// The keys whose flights this call leads are computed together. Flights that wait for other callers are tried again, all
/// after the same pause. This call never blocks on one flight while it holds the lock of another; while the closure runs,
/// it gives up the flights that wait, and closes their lock files. So calls for the same keys can't deadlock, whatever
/// the order of their keys. At most ``most`` flights are in progress at once, each with at most one open file; others
/// start as these end.
struct FlightBatch<Codec: CacheCodec>: Sendable {
    typealias Value = Codec.Value
    typealias Request = FlightRequest<Codec, any Error>
    typealias Compute = @Sendable ([String]) throws -> [String: Codec.Value]
    typealias AsyncCompute = @Sendable ([String]) async throws -> [String: Codec.Value]

    /// The maximum number of flights in progress, and of keys in one call of the closure.
    ///
    /// Each flight takes a file descriptor; a process has 1,024 of them unless it raises the limit.
    static var most: Int { 128 }

    /// A key whose flight has not started.
    private struct Place: Sendable {
        let digest: Digest
        let key: String
        /// The value to refresh; nil if there is none.
        let aging: Request.Hit?
    }

    /// Why the batch ends without all values.
    private struct Failure: Sendable {
        let error: any Error
        /// Whether the wait for other callers exceeded the wait limit.
        ///
        /// Such an error is thrown after this call has computed its own keys; other errors are thrown at once.
        var isTimeout = false
    }

    /// The request for each key; its own key is empty.
    private let request: Request
    /// The keys without a flight, by descending digest.
    ///
    /// Flights start from the end. As all calls start with the smallest digests, calls for the same keys meet early and
    /// share most computations.
    private var places: [Place] = []
    /// The keys to refresh once the call is over.
    private var agingPlaces: [Place] = []
    private var flights: [Flight<Codec, any Error>] = []
    /// The values found or computed so far.
    private(set) var values: [String: Codec.Value] = [:]
    /// The missing keys of a call that must not compute.
    private var absent: [String] = []
    private var failure: Failure?
    private var backoff = Backoff(upTo: FlightLock.longestPause)
    /// The remaining time to wait for disk space: all values together wait no longer than one.
    private(set) var patience = Request.roomPatience

    /// Creates a batch for these full keys, and looks up all of them on the calling thread.
    init<Source: KeyedCache>(
        _ keys: [String],
        in source: Source,
        _ terms: PutOptions?,
        _ options: ReadOptions
    ) where Source.Codec == Codec {
        let kind: FlightStateMachine.Kind = options.failsAtWaitLimit ? .valueInTime : .cancellable
        var request = Request(source, "", terms, options, kind)
        request.deadline = options.waitLimit.map { .now + .nanoseconds(max(0, $0.saturatingNanoseconds)) }
        request.askingEnd = source.cache.remote.map { ContinuousClock.now + $0.tier.limit }
        self.request = request
        for key in keys { look(for: key) }
        places.sort { $1.digest.word(0) < $0.digest.word(0) }
    }

    private func asking(for key: String) -> Request {
        var request = request
        request.key = key
        return request
    }

    private mutating func look(for key: String) {
        let request = asking(for: key)
        if request.options.source != .anywhere {
            let hit = request.withoutFailing { () throws(CacheError) in
                try request.cache.find(key, request.codec, request.options.withoutOthers)
            }
            if let hit { values[key] = hit.value } else { absent.append(key) }
            return
        }
        let hit = request.firstLook()
        let verdict = request.verdict(on: hit)
        if let hit, verdict != .miss {
            values[key] = hit.value
            if verdict == .agingHit {
                agingPlaces.append(Place(digest: request.cache.name(ofKey: key), key: key, aging: hit))
            }
        } else if hit != nil || !request.remembersNothing() {
            places.append(Place(digest: request.cache.name(ofKey: key), key: key, aging: nil))
        }
    }

    /// Whether remote servers must be asked for keys that this call must not compute.
    var asksOthers: Bool { request.askingEnd != nil && !absent.isEmpty }

    /// Asks remote servers for the missing keys that this call must not compute, and waits for the answers.
    func sharedByOthers() -> [String: Value] {
        var shared: [String: Value] = [:]
        for key in absent {
            if case .success(let hit?) = asking(for: key).sharedByOthers() { shared[key] = hit.value }
        }
        return shared
    }

    /// Adds values that need not be computed.
    mutating func add(_ found: [String: Value]) { values.merge(found) { $1 } }

    /// A batch that refreshes the values that are due for a refresh; nil if there are none.
    var refresh: FlightBatch? {
        if agingPlaces.isEmpty { return nil }
        var batch = self
        batch.places = agingPlaces
        batch.agingPlaces = []
        batch.flights = []
        return batch
    }

    // MARK: Flights

    /// Starts flights, and advances each as far as possible without waiting or computing.
    ///
    /// It reads the disk, acquires free locks and stores computed values, which blocks the thread.
    private mutating func advance() {
        var isFull = hasFailed
        while !isFull {
            while flights.count < Self.most, let place = places.popLast() {
                if let flight = flight(to: place) { flights.append(flight) }
            }
            for index in flights.indices { advance(flightAt: index) }
            land()
            isFull = places.isEmpty || flights.count >= Self.most || hasFailed
        }
        if hasFailed {
            for index in flights.indices { flights[index].abandon() }
        } else {
            giveWay()
        }
    }

    private mutating func advance(flightAt index: Int) {
        let start = ContinuousClock.now
        flights[index].making.patience = patience
        flights[index].advance()
        let spent = ContinuousClock.now - start
        if flights[index].making.isUnstored { patience = max(.zero, patience - spent) }
    }

    /// Ends the flights that wait, to start them again after the closure has run.
    ///
    /// While the closure runs, however long, no other caller must wait for one of these flights.
    private mutating func giveWay() {
        guard flights.contains(where: { $0.course.action == .compute }) else { return }
        for index in flights.indices where [.wait, .pause].contains(flights[index].course.action) {
            flights[index].abandon()
            if flights[index].hasAnswer { continue }
            let key = flights[index].request.key
            // These keys come after the ones that were not tried yet.
            places.insert(Place(digest: request.cache.name(ofKey: key), key: key, aging: nil), at: 0)
        }
        flights.removeAll { $0.course.action == .finish && !$0.hasAnswer }
        land()
    }

    private func flight(to place: Place) -> Flight<Codec, any Error>? {
        let request = asking(for: place.key)
        var course = FlightStateMachine(request.kind)
        course.proceed(place.aging == nil ? .miss : .agingHit)
        let flight = Flight(request, course, place.aging)
        return place.aging == nil ? flight : flight.refresh()
    }

    /// Whether the batch must end at once.
    private var hasFailed: Bool { failure?.isTimeout == false }

    private mutating func fail(_ error: any Error) {
        if !hasFailed { failure = Failure(error: error) }
    }

    /// Removes the flights that have ended, and keeps their results.
    private mutating func land() {
        for flight in flights where flight.course.action == .finish && flight.course.kind != .refresh {
            let key = flight.request.key
            switch flight.end {
            case .success(let hit): values[key] = hit?.value
            case .failure(.timedOut):
                let error = FlightFailure<any Error>.timedOut(flight.request.holder()).thrown(key)
                failure = failure ?? Failure(error: error, isTimeout: true)
            case .failure(let reason): fail(reason.thrown(key))
            }
        }
        flights.removeAll { $0.course.action == .finish }
    }

    /// Returns the keys to compute now, and counts their computations.
    private mutating func begin() -> [String] {
        var keys: [String] = []
        for index in flights.indices where flights[index].course.action == .compute {
            if flights[index].begin() { keys.append(flights[index].request.key) }
        }
        if !keys.isEmpty { backoff = Backoff(upTo: FlightLock.longestPause) }
        return keys
    }

    /// Processes the closure's result; keys that it leaves out have no value.
    private mutating func computed(
        _ result: Result<[String: Value], any Error>,
        since start: ContinuousClock.Instant,
        isCancelled: Bool = false
    ) {
        for index in flights.indices where flights[index].course.action == .compute {
            let (key, terms) = (flights[index].request.key, request.terms)
            let made = result.map { found -> Computed<Value> in
                found[key].map { Computed<Value>.value($0, terms) } ?? .nothing(for: .zero)
            }
            flights[index].computed(made, since: start, isCancelled: isCancelled)
        }
        // The computation has forked, and this is the child: nothing of the cache belongs to it.
        guard !request.isOwn else { return }
        for flight in flights {
            if case .success(let hit?) = flight.end { values[flight.request.key] = hit.value }
        }
        if case .failure(let error) = result { fail(error) }
        flights = []
    }

    // MARK: Running

    /// The keys without a flight; once all flights have ended, there are none, unless this process is a child that was
    /// forked meanwhile.
    private var rest: [String] { places.map(\.key) }

    /// Runs the whole batch on the calling thread.
    mutating func run(_ compute: Compute) throws -> [String: Value] {
        while true {
            if request.isOwn { advance() }
            if hasFailed, let failure { throw failure.error }
            if flights.isEmpty, rest.isEmpty {
                if let failure { throw failure.error }
                return values
            }
            if flights.isEmpty { return values.merging(try compute(rest)) { $1 } }
            let keys = begin()
            if keys.isEmpty {
                sleepThread(for: backoff.next())
                continue
            }
            let start = ContinuousClock.now
            computed(Result { try compute(keys) }, since: start)
        }
    }

    /// Runs the whole batch, with blocking actions on the library's threads.
    mutating func run(_ compute: AsyncCompute) async throws -> [String: Value] {
        while true {
            if request.isOwn { await advanceOffThread() }
            if hasFailed, let failure { throw failure.error }
            if flights.isEmpty, rest.isEmpty {
                if let failure { throw failure.error }
                return values
            }
            if flights.isEmpty { return values.merging(try await compute(rest)) { $1 } }
            let keys = begin()
            if keys.isEmpty {
                do {
                    try await Task.sleep(for: backoff.next())
                } catch {
                    fail(error)
                }
                continue
            }
            let start = ContinuousClock.now
            let result: Result<[String: Value], any Error>
            do {
                result = .success(try await compute(keys))
            } catch {
                result = .failure(error)
            }
            computed(result, since: start, isCancelled: Task.isCancelled)
        }
    }

    private mutating func advanceOffThread() async {
        self = await offload { [self] in
            var batch = self
            batch.advance()
            return batch
        }
    }
}
