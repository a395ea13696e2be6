// SPDX-License-Identifier: Apache-2.0

/// Where everything is in the control file, in 64-bit words.
///
/// ```
///      0  magic "diskctrl"   1  version   2  bytes of the file   3  state
///      8  usage: bytes       9  usage: entries      10  1: has been counted
///     11  since when the counters count, ns since 1970
///     12  the seal of a complete filter (ControlFile.filterSeal)
///     13  bytes on disk beside entries and objects: directories, this file; 0: not counted yet
///     14  for how long, ns, what was evicted last had not been used; 0: nothing was evicted yet
///     15  entries that were replaced or removed since the last mark, whose objects may be orphans
///     16  when something was evicted last, ns since 1970
///     17  what writers are about to take: two words that take turns   19  the turn
///     20  where the words are in memory: the seal of the file that names them (ControlFile.pointerSeal)
///     21  steps of who holds the `janitor` lock   22  that process, and its namespace of processes in the upper half
///    128  for each object stripe, then each entry stripe: until when it is wanted exclusively
///    256  keys that were evicted lately (EvictedKeys)
///    512  16 shards of 64 counters (StoreCounters.Event)
///   1536  262,144 generations
/// 263680  the filter of keys: 16,384 blocks of 8 words
/// ```
///
/// Words are in the processor's own order: a control file does not travel, and is made anew where it does
/// not fit. What is added later goes to words that are free, which are 0 in files made before.
enum ControlLayout {
    /// "diskctrl".
    static let magic: UInt64 = 0x6469_736b_6374_726c
    /// Of this layout; a file with another one is replaced.
    static let version: UInt64 = 2

    static let magicIndex = 0
    static let versionIndex = 1
    static let sizeIndex = 2
    static let stateIndex = 3
    static let usedBytes = 8
    static let usedEntries = 9
    static let isUsageCounted = 10
    static let countedSince = 11
    static let filterSeal = 12
    static let overheadBytes = 13
    static let horizon = 14
    static let replacedEntries = 15
    static let lastEviction = 16
    static let claims = 17
    static let claimTurn = 19
    static let pointerSeal = 20
    static let sweepSteps = 21
    static let sweepHolder = 22
    static let wanted = 128
    static let evictedKeys = 256
    static let evictedKeyCount = 256
    static let counters = 512
    static let generations = counters + counterShards * counterSlots
    static let filter = generations + generationCount

    /// So many threads count without getting into each other's way; each shard has cache lines of its own.
    static let counterShards = 16
    /// Room for later events.
    static let counterSlots = 64
    /// With so many words an innocent key shares its own with a key that is being written once in a while
    /// only: among 100,000 keys with 0.4 others; 2 MiB.
    static let generationCount = 1 << generationBits
    static let generationBits = 18
    /// 1 MiB: see ``KeyFilter``.
    static let filterWords = 1 << 17

    static let wordCount = filter + filterWords
    static let byteCount = wordCount * 8

    /// Where the words are in memory, the path of the directory follows them, for ``ControlPointer``.
    static let memoryByteCount = byteCount + memoryPathSize
    /// Bytes: PATH_MAX of linux/limits.h.
    static let memoryPathSize = 4096
}
