// SPDX-License-Identifier: Apache-2.0

public import CacheStore

/// Why `value(forKey:within:orCompute:)` returned no value.
public enum WaitError<Failure: Error>: Error {
    /// Another caller is computing the value and was not done within the limit.
    ///
    /// It continues. The process is named if it is known.
    case timedOut(ComputingProcess?)
    /// The waiting task was cancelled.
    case cancelled
    /// The computation of this caller failed.
    case computation(Failure)
}

extension WaitError: Equatable where Failure: Equatable {}
