// SPDX-License-Identifier: Apache-2.0

import Platform

// Both forms carry out the same course: one on the calling thread, the other without blocking it.

extension Flight {
    /// Carries out the whole course on the calling thread.
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
                    let isBegun = Lane.refreshing.pool.runIfFree { [refresh] in
                        var refresh = refresh
                        _ = refresh.run(work)
                    }
                    // The next hit tries again; whoever waits for this one meanwhile leads.
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

    /// Carries out the whole course; what blocks is done on threads of ours.
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

    /// What the closure is told.
    ///
    /// - Parameter seesPrevious: whether it wants to know what is there, which blocks the thread.
    mutating func makeComputation(seesPrevious: Bool) -> Computation<Value> {
        if seesPrevious { (making.generation, making.previous) = request.previous() }
        return computation
    }

    /// The same, without blocking it.
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
        return Computation(key: request.key, reason: reason, previous: making.previous)
    }

    private mutating func pause() async -> FlightCourse.Event {
        guard let pause = nextPause() else { return .timedOut }
        // Sleeping fails only where the task is cancelled.
        return (try? await Task.sleep(for: pause)) == nil ? .cancelled : .done
    }

    /// Carries out what blocks, one action after another, until something else is to be done.
    private mutating func carryOutOffThread() async {
        guard let lane else { return }
        self = await offload(on: lane) { [self] in
            var flight = self
            repeat { flight.carryOut() } while flight.lane != nil
            return flight
        }
    }

    /// Where the next action is carried out; nil if it does not block a thread.
    private var lane: Lane? {
        switch course.action {
        // Looking at an entry publishes a put that waits.
        case .attempt, .lookAgain, .release:
            course.kind == .refresh ? .writing : request.source.cache.remote == nil ? .reading : .asking
        case .store, .fallBack: .writing
        case .look, .wait, .pause, .enter, .handOver, .compute, .refresh, .finish: nil
        }
    }
}
