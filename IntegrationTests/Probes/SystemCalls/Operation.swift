// SPDX-License-Identifier: Apache-2.0

/// The operations that `SystemCallProbe` can repeat.
enum Operation: String, CaseIterable {
    /// Reads a value from disk.
    case get
    /// Reads a value from memory.
    case memoryHits = "memory-hits"
    /// Gets a key that was never put in this directory.
    case miss
    /// Gets a key that was put and removed.
    case missRemoved = "miss-removed"
    /// Puts a new value under a new key.
    case new
    /// Puts the same value under the same key.
    case overwrite
    /// Puts a new value under the same key.
    case replace
    /// Queues a value under a new key; nothing is published in the meantime.
    case behind
    /// Puts a value that is only kept in memory, under the same key.
    case memoryOnly = "memory-only"
    /// Computes a value, and stores it under a new key.
    case compute
    case touch, contains, entry
    /// Removes a key that does not exist.
    case remove
    /// Removes all values at once.
    case removeAll = "remove-all"
    /// Takes and releases a free lock.
    case lock
    /// Opens and releases a cache.
    case open
    /// Collects garbage, and finds nothing to delete.
    case scan
    /// Collects garbage, and keeps SIZE entries.
    case trim
    /// Puts small values under keys that no other operation uses, to prepare operations on a full directory.
    case fill
    /// Creates only the key, as in `new`.
    case key
}
