// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

/// The result of closing a cache.
public struct CloseReport: Sendable, Equatable {
    /// Whether this was the last open cache in the directory, across all processes.
    ///
    /// Caches that do not count as open are ignored (see ``CacheConfiguration/Janitor/joinsSession``).
    public internal(set) var wasLast = false
    /// The report on the removal of expired values; nil if other processes have the cache open, or another process was
    /// collecting.
    public internal(set) var collection: CollectionReport?
    /// Whether closing completed all of its work.
    ///
    /// False if the time was too short, another process was collecting, or an error occurred. Values in the write-behind
    /// queue may then be lost; expired values are left to the next process.
    public internal(set) var isComplete = true
    /// The error that occurred, if any.
    public internal(set) var failure: CacheError?
}
