// SPDX-License-Identifier: Apache-2.0

import Platform

// The synchronous and the asynchronous forms carry out the same course: one on the calling thread, the other without
// blocking it.

extension FlightRequest {
    /// Runs the request on the calling thread and returns its outcome.
    func end(_ work: Work) -> End {
        guard isOwn else { return unshared(work.run(Computation(of: ownKey), terms)) }
        let hit = firstLook()
        var course = FlightStateMachine(kind)
        course.proceed(verdict(on: hit))
        if let hit, course.action == .finish { return .success(hit) }
        if hit == nil, remembersNothing() { return .success(nil) }
        var flight = Flight(self, course, hit)
        let end = flight.run(work)
        if case .failure(.timedOut) = end { return .failure(.timedOut(holder())) }
        return end
    }

    /// Runs the request without blocking a thread and returns its outcome.
    func end(_ work: AsyncWork) async -> End {
        guard isOwn else { return unshared(await work.run(Computation(of: ownKey), terms)) }
        var hit: Hit?
        if !options.recomputes {
            do throws(CacheError) {
                hit = try await cache.find(key, codec, .here(acceptsStale: allowsStale))
            } catch {
                cache.count(.cacheFailure)
            }
        }
        var course = FlightStateMachine(kind)
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
}

extension Flight {
    /// Runs the whole course on the calling thread.
    mutating func run(_ work: Request.Work) -> Request.End {
        while true {
            switch course.action {
            case .finish: return end
            case .compute:
                guard begin() else { continue }
                let computation = makeComputation(seesPrevious: work.seesPrevious)
                let start = ContinuousClock.now
                computed(work.run(computation, request.terms), since: start)
                guard request.isOwn else { return end }
            case .refresh:
                if var refresh = refresh() {
                    let isBegun = WorkerPool.refreshing.pool.runIfFree { [refresh] in
                        var refresh = refresh
                        _ = refresh.run(work)
                    }
                    // No thread was free: the next hit tries again to start a refresh. If a request has joined this
                    // flight meanwhile, it leads next.
                    if !isBegun {
                        refresh.proceed(.unavailable)
                        refresh.carryOut()
                    }
                }
                proceed(.done)
            default: carryOut()
            }
        }
    }

    /// Runs the whole course, with blocking actions on the library's threads.
    mutating func run(_ work: Request.AsyncWork) async -> Request.End {
        while true {
            switch course.action {
            case .finish: return end
            case .wait: proceed(seated(await waitOffThread()))
            case .pause: proceed(await pause())
            case .look, .enter, .handOver: carryOut()
            case .compute:
                guard begin() else { continue }
                let computation = await makeComputation(seesPrevious: work.seesPrevious)
                let start = ContinuousClock.now
                let result = await work.run(computation, request.terms)
                computed(result, since: start, isCancelled: Task.isCancelled)
                guard request.isOwn else { return end }
            case .refresh:
                if let refresh = refresh() {
                    Task.detached {
                        var refresh = refresh
                        _ = await refresh.run(work)
                    }
                }
                proceed(.done)
            case .attempt, .lookAgain, .store, .release, .fallBack: await carryOutOffThread()
            }
        }
    }

    /// Returns the closure's argument.
    ///
    /// - Parameter seesPrevious: whether the closure receives the previous value, whose lookup blocks the thread.
    mutating func makeComputation(seesPrevious: Bool) -> Computation<Value> {
        if seesPrevious { (making.generation, making.previous) = request.previous() }
        return computation
    }

    /// Returns the closure's argument without blocking the thread.
    mutating func makeComputation(seesPrevious: Bool) async -> Computation<Value> {
        if seesPrevious {
            (making.generation, making.previous) = await offload(on: .reading) { [request] in
                request.previous()
            }
        }
        return computation
    }

    private var computation: Computation<Value> {
        let reason: Computation<Value>.Reason =
            if course.kind == .refresh {
                .stale
            } else if request.options.recomputes {
                .forced
            } else {
                making.previous == nil ? .absent : .expired
            }
        return Computation(key: request.ownKey, reason: reason, previous: making.previous)
    }

    private mutating func pause() async -> FlightStateMachine.Event {
        guard let pause = nextPause() else { return .timedOut }
        // `sleep` throws only if the task is cancelled.
        return (try? await Task.sleep(for: pause)) == nil ? .cancelled : .done
    }

    /// Carries out blocking actions on a library thread, until the next action does not block.
    private mutating func carryOutOffThread() async {
        guard let lane else { return }
        self = await offload(on: lane) { [self] in
            var flight = self
            repeat { flight.carryOut() } while flight.lane != nil
            return flight
        }
    }

    /// The thread pool for the next action; nil if the action does not block a thread.
    private var lane: WorkerPool? {
        switch course.action {
        // A refresh writes, because its lookup of the entry publishes a pending put.
        case .attempt, .lookAgain, .release:
            course.kind == .refresh ? .writing : request.cache.remote == nil ? .reading : .asking
        case .store, .fallBack: .writing
        case .look, .wait, .pause, .enter, .handOver, .compute, .refresh, .finish: nil
        }
    }
}
