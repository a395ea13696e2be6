// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension FlightRequest {
    typealias Compute = @Sendable () throws(Failure) -> Value

    /// The value, on the calling thread.
    func value(_ compute: @escaping Compute) -> End {
        guard source.cache.core.isOwn else { return Self.computedAlone(compute) }
        let hit = withoutFailing { () throws(CacheError) in try source.lookup(allowingStale: allowsStale) }
        if let hit {
            switch verdict(on: hit) {
            case .use: return .value(hit.value)
            case .useAndRefresh:
                startRefresh(of: hit.entry, compute)
                return .value(hit.value)
            case .compute: break
            }
        }
        let end = rememberedFailure().map { .failed($0) } ?? fly(compute)
        if case .failed = end, let value = lastResort() { return .value(value) }
        return end
    }

    /// In a child that was forked from the process that has opened the cache: whoever was computing there does not
    /// exist here.
    private static func computedAlone(_ compute: Compute) -> End {
        do throws(Failure) {
            return .value(try compute())
        } catch {
            return .failed(error)
        }
    }

    private func fly(_ compute: Compute) -> End {
        var place = place
        while true {
            let end = takePart(in: place, until: deadline, compute)
            switch end {
            case .value, .failed: return end
            case .timedOut where endsUncomputed, .cancelled where endsUncomputed: return end
            case .cancelled: return run(compute, leading: nil, holding: nil)
            case .timedOut: place.impatience += 1
            }
        }
    }

    private func takePart(
        in place: FlightKey,
        until deadline: ContinuousClock.Instant?,
        _ compute: Compute
    ) -> End {
        let seat = FlightSeat<Value>()
        if case .wait(let number) = flights.enter(place, seat) {
            flights.count(.wait)
            switch seat.wait(until: deadline) {
            case .value(let value): return .value(value)
            case .lead: break
            case .timedOut:
                flights.leave(place, number)
                return .timedOut
            case .cancelled:
                flights.leave(place, number)
                return .cancelled
            }
        }
        let isFirst = place.impatience == 0
        let end = isFirst ? lead(place, until: deadline, compute) : leadBeside(place, compute)
        conclude(place, end)
        return end
    }

    /// Computes beside who was waited for in vain, unless another impatient one has meanwhile.
    private func leadBeside(_ place: FlightKey, _ compute: Compute) -> End {
        if let hit = lookAgain(leading: place) { return .value(hit.value) }
        return run(compute, leading: place, holding: nil)
    }

    /// Gets the lock among the processes, and computes unless another one has.
    private func lead(
        _ place: FlightKey,
        until deadline: ContinuousClock.Instant?,
        _ compute: Compute
    ) -> End {
        let approach = FlightApproach(place.digest, in: source.cache)
        var backoff = Backoff(upTo: FlightApproach.longestPause)
        var hasWaited = false
        while true {
            switch approach.attempt() {
            case .acquired:
                guard let hit = lookAgain(leading: place) else {
                    return run(compute, leading: place, holding: approach)
                }
                approach.release(isStored: true)
                return .value(hit.value)
            case .ended(let isUnstored):
                if let hit = lookAgain(leading: place) { return .value(hit.value) }
                if isUnstored { return run(compute, leading: place, holding: nil) }
            case .unavailable:
                return run(compute, leading: place, holding: nil)
            case .held:
                if !hasWaited { flights.count(.wait) }
                hasWaited = true
                guard let pause = pause(&backoff, before: deadline) else { return .timedOut }
                sleepThread(for: pause)
            }
        }
    }

    private func run(
        _ compute: Compute,
        leading led: FlightKey?,
        holding approach: FlightApproach?
    ) -> End {
        if let failure = rememberedFailure() {
            approach?.release(isStored: true)
            return .failed(failure)
        }
        flights.count(.computation)
        let start = ContinuousClock.now
        do throws(Failure) {
            return settle(try compute(), since: start, approach, leading: led)
        } catch {
            guard source.cache.core.isOwn else { return .failed(error) }
            approach?.release(isStored: true)
            noteFailure(error, isCancelled: false)
            return .failed(error)
        }
    }

    // MARK: In the background

    private func startRefresh(of seen: CacheEntry, _ compute: @escaping Compute) {
        let place = place
        guard rememberedFailure() == nil, flights.begin(place) else { return }
        let isBegun = refreshInBackground { conclude(place, report(refresh(seen, compute))) }
        // The next hit tries again; whoever waits for this one meanwhile leads.
        if !isBegun { flights.handOver(place) }
    }

    /// Computes unless another process does so or has.
    private func refresh(_ seen: CacheEntry, _ compute: Compute) -> End {
        let approach = FlightApproach(place.digest, in: source.cache)
        guard approach.attempt() == .acquired else { return .timedOut }
        if isRefreshed(since: seen) {
            approach.release(isStored: true)
            return .timedOut
        }
        flights.count(.refresh)
        return run(compute, leading: place, holding: approach)
    }
}
