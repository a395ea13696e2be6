// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension FlightSource {
    /// The value, on the calling thread; the computation's error is the only one.
    func value<Failure: Error>(
        _ options: ComputeOptions,
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let request = FlightRequest<Self, Failure>(
            source: self,
            options: options,
            limit: options.waitLimit,
            endsUncomputed: false
        )
        switch request.value(compute) {
        case .value(let value): return value
        case .failed(let error): throw error
        case .timedOut, .cancelled: return try compute()
        }
    }

    /// The value; the computation's error is the only one.
    func value<Failure: Error>(
        _ options: ComputeOptions,
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let request = FlightRequest<Self, Failure>(
            source: self,
            options: options,
            limit: options.waitLimit,
            endsUncomputed: false
        )
        switch await request.value(compute) {
        case .value(let value): return value
        case .failed(let error): throw error
        case .timedOut, .cancelled: return try await compute()
        }
    }

    /// The value, on the calling thread, or an error where somebody else takes longer than `limit`.
    func value<Failure: Error>(
        within limit: Duration,
        _ options: ComputeOptions,
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(WaitError<Failure>) -> Value {
        let request = FlightRequest<Self, Failure>(
            source: self,
            options: options,
            limit: limit,
            endsUncomputed: true
        )
        switch request.value(compute) {
        case .value(let value): return value
        case .failed(let error): throw .computation(error)
        case .timedOut: throw .timedOut(request.holder())
        case .cancelled: throw .cancelled
        }
    }

    /// The value, or an error where somebody else takes longer than `limit` or the task is cancelled.
    func value<Failure: Error>(
        within limit: Duration,
        _ options: ComputeOptions,
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(WaitError<Failure>) -> Value {
        let request = FlightRequest<Self, Failure>(
            source: self,
            options: options,
            limit: limit,
            endsUncomputed: true
        )
        switch await request.value(compute) {
        case .value(let value): return value
        case .failed(let error): throw .computation(error)
        case .timedOut: throw .timedOut(await offload(on: .reading) { request.holder() })
        case .cancelled: throw .cancelled
        }
    }
}

extension FlightRequest {
    /// Who computes the value now, as far as that is known.
    fileprivate func holder() -> ComputingProcess? {
        withoutFailing { () throws(CacheError) in try source.cache.computingProcess(forKey: source.key) }
    }
}
