// SPDX-License-Identifier: Apache-2.0

/// Why a value left the memory tier.
@nonexhaustive
public enum MemoryRemovalCause: String, Sendable, CaseIterable, Codable, CodingKeyRepresentable {
    /// A call removed the value.
    case explicit
    /// This process stored another value for the key.
    case replaced
    /// The value expired, or its time in memory was over.
    case expired
    /// The total cost of the values exceeded its limit.
    case cost
    /// The number of values exceeded its limit.
    case count
    /// The value may be outdated: another writer changed its key, or a key that shares its word in the generation table;
    /// the directory was replaced; or publishing the queued put failed.
    case invalidated
    /// The system ran short of memory.
    case pressure
}
