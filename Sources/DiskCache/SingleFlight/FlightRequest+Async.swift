// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension FlightRequest {
    typealias AsyncCompute = @Sendable () async throws(Failure) -> Value

    /// The value; what blocks is done on threads of ours.
    func value(_ compute: @escaping AsyncCompute) async -> End {
        guard source.cache.core.isOwn else { return await Self.computedAlone(compute) }
        if let hit = await look() {
            // For an expired value whose accesses prolong it this publishes a put that waits, and reads from disk.
            switch hit.isStale ? await offload({ verdict(on: hit) }) : verdict(on: hit) {
            case .use: return .value(hit.value)
            case .useAndRefresh:
                startRefresh(of: hit.entry, compute)
                return .value(hit.value)
            case .compute: break
            }
        }
        var end: End
        if let failure = rememberedFailure() { end = .failed(failure) } else { end = await fly(compute) }
        if case .failed = end, let value = await offload(on: .reading, { lastResort() }) {
            end = .value(value)
        }
        return end
    }

    private static func computedAlone(_ compute: AsyncCompute) async -> End {
        do throws(Failure) {
            return .value(try await compute())
        } catch {
            return .failed(error)
        }
    }

    private func look() async -> FlightHit<Value>? {
        do throws(CacheError) {
            return try await source.lookupOffThread(allowingStale: allowsStale)
        } catch {
            flights.count(.cacheFailure)
            return nil
        }
    }

    private func fly(_ compute: AsyncCompute) async -> End {
        var place = place
        while true {
            let end = await takePart(in: place, until: deadline, compute)
            switch end {
            case .value, .failed: return end
            case .timedOut where endsUncomputed, .cancelled where endsUncomputed: return end
            case .cancelled: return await run(compute, leading: nil, holding: nil)
            case .timedOut: place.impatience += 1
            }
        }
    }

    private func takePart(
        in place: FlightKey,
        until deadline: ContinuousClock.Instant?,
        _ compute: AsyncCompute
    ) async -> End {
        let seat = FlightSeat<Value>()
        if case .wait(let number) = flights.enter(place, seat) {
            flights.count(.wait)
            switch await seat.wait(until: deadline) {
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
        let end =
            isFirst ? await lead(place, until: deadline, compute) : await leadBeside(place, compute)
        conclude(place, end)
        return end
    }

    /// Computes beside who was waited for in vain, unless another impatient one has meanwhile.
    private func leadBeside(_ place: FlightKey, _ compute: AsyncCompute) async -> End {
        if let hit = await offload(on: .reading, { lookAgain(leading: place) }) { return .value(hit.value) }
        return await run(compute, leading: place, holding: nil)
    }

    /// Gets the lock among the processes, and computes unless another one has.
    private func lead(
        _ place: FlightKey,
        until deadline: ContinuousClock.Instant?,
        _ compute: AsyncCompute
    ) async -> End {
        let approach = FlightApproach(place.digest, in: source.cache)
        var backoff = Backoff(upTo: FlightApproach.longestPause)
        var hasWaited = false
        while true {
            switch await offload(on: .reading, { attempt(approach, leading: place) }) {
            case .found(let value): return .value(value)
            case .compute(let isLocked):
                return await run(compute, leading: place, holding: isLocked ? approach : nil)
            case .retry: continue
            case .held:
                if !hasWaited { flights.count(.wait) }
                hasWaited = true
                guard let pause = pause(&backoff, before: deadline) else { return .timedOut }
                guard await sleep(for: pause) else { return .cancelled }
            }
        }
    }

    /// What a leader is to do next.
    private enum Next: Sendable {
        case found(Value)
        case compute(isLocked: Bool)
        case retry
        case held
    }

    private func attempt(_ approach: FlightApproach, leading place: FlightKey) -> Next {
        switch approach.attempt() {
        case .acquired:
            guard let hit = lookAgain(leading: place) else { return .compute(isLocked: true) }
            approach.release(isStored: true)
            return .found(hit.value)
        case .ended(let isUnstored):
            if let hit = lookAgain(leading: place) { return .found(hit.value) }
            return isUnstored ? .compute(isLocked: false) : .retry
        case .unavailable: return .compute(isLocked: false)
        case .held: return .held
        }
    }

    /// False: the task was cancelled.
    private func sleep(for pause: Duration) async -> Bool {
        do {
            try await Task.sleep(for: pause)
            return true
        } catch {
            return false
        }
    }

    private func run(
        _ compute: AsyncCompute,
        leading led: FlightKey?,
        holding approach: FlightApproach?
    ) async -> End {
        if let failure = rememberedFailure() {
            await offload(on: .reading) { approach?.release(isStored: true) }
            return .failed(failure)
        }
        flights.count(.computation)
        let start = ContinuousClock.now
        do throws(Failure) {
            let value = try await compute()
            return await offload { settle(value, since: start, approach, leading: led) }
        } catch {
            await offload(on: .reading) { approach?.release(isStored: true) }
            noteFailure(error, isCancelled: Task.isCancelled)
            return .failed(error)
        }
    }

    // MARK: In the background

    private func startRefresh(of seen: CacheEntry, _ compute: @escaping AsyncCompute) {
        let place = place
        guard rememberedFailure() == nil, flights.begin(place) else { return }
        Task.detached {
            conclude(place, report(await refresh(seen, compute)))
        }
    }

    /// Computes unless another process does so or has.
    private func refresh(_ seen: CacheEntry, _ compute: AsyncCompute) async -> End {
        let approach = FlightApproach(place.digest, in: source.cache)
        let isDue = await offload {
            guard approach.attempt() == .acquired else { return false }
            if !isRefreshed(since: seen) { return true }
            approach.release(isStored: true)
            return false
        }
        guard isDue else { return .timedOut }
        flights.count(.refresh)
        return await run(compute, leading: place, holding: approach)
    }
}
