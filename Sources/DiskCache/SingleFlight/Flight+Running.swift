// SPDX-License-Identifier: Apache-2.0

import Platform

// Both forms carry out the same course: one on the calling thread, the other without blocking it.

extension Flight {
    /// Carries out the whole course on the calling thread.
    mutating func run(_ compute: @escaping Request.Compute) -> Request.End {
        while true {
            switch course.action {
            case .finish: return end
            case .compute:
                guard begin() else { continue }
                let start = ContinuousClock.now
                computed(Result(catching: compute), since: start)
                guard request.isOwn else { return end }
            case .refresh:
                if var refresh = refresh() {
                    let isBegun = Lane.refreshing.pool.runIfFree { [refresh] in
                        var refresh = refresh
                        _ = refresh.run(compute)
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
    mutating func run(_ compute: @escaping Request.AsyncCompute) async -> Request.End {
        while true {
            switch course.action {
            case .finish: return end
            case .wait: proceed(seated(await waitOffThread()))
            case .pause: proceed(await pause())
            case .look, .enter, .handOver: carryOut()
            case .compute:
                guard begin() else { continue }
                let start = ContinuousClock.now
                let result = await Result(awaiting: compute)
                computed(result, since: start, isCancelled: Task.isCancelled)
                guard request.isOwn else { return end }
            case .refresh:
                if let refresh = refresh() {
                    Task.detached {
                        var refresh = refresh
                        _ = await refresh.run(compute)
                    }
                }
                proceed(.done)
            case .attempt, .lookAgain, .store, .release, .fallBack: await carryOutOffThread()
            }
        }
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
        case .attempt, .lookAgain, .release: course.kind == .refresh ? .writing : .reading
        case .store, .fallBack: .writing
        case .look, .wait, .pause, .enter, .handOver, .compute, .refresh, .finish: nil
        }
    }
}

extension Result {
    /// What came of `body`, as ``init(catching:)`` for what does not await.
    init(awaiting body: () async throws(Failure) -> Success) async {
        do throws(Failure) {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
