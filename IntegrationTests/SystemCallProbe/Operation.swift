// SPDX-License-Identifier: Apache-2.0

/// What the probe can repeat.
enum Operation: String, CaseIterable {
    /// A value read from the disk.
    case get
    /// A value from memory.
    case memoryHits = "memory-hits"
    /// A key that was never put in this directory.
    case miss
    /// A key that was put and removed.
    case missRemoved = "miss-removed"
    /// A new value under a new key.
    case new
    /// The same value under the same key.
    case overwrite
    /// A new value under the same key.
    case replace
    /// A value that is queued under a new key; nothing is published meanwhile.
    case behind
    /// A value that is kept in memory alone, under the same key.
    case memoryOnly = "memory-only"
    /// A value that is computed and stored under a new key.
    case compute
    case touch, contains, entry
    /// Removing what is not there.
    case remove
    /// Removing all values at once.
    case removeAll = "remove-all"
    /// A lock that is free, taken and given back.
    case lock
    /// A cache opened and let go.
    case open
    /// A collection that finds nothing to delete.
    case scan
    /// A collection that leaves SIZE entries.
    case trim
    /// Small values under keys that no other operation uses: for the operations that are about a full directory.
    case fill
    /// Nothing but the making of a key, as in `new`.
    case key
}
