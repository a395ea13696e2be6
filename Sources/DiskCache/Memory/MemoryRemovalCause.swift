// SPDX-License-Identifier: Apache-2.0

/// Why a value left the memory tier.
@nonexhaustive
public enum MemoryRemovalCause: String, Sendable, CaseIterable, Codable, CodingKeyRepresentable {
    /// It was removed by a call.
    case explicit
    /// This process stored another value for its key.
    case replaced
    /// It expired, or its time in memory was over.
    case expired
    /// Other values needed its space.
    case cost
    /// There were more values than the count limit.
    case count
    /// Another process has changed its key, or a key that shares its word in the table of generations.
    case invalidated
    /// The system ran short of memory.
    case pressure
}
