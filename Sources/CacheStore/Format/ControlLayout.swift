// SPDX-License-Identifier: Apache-2.0

import Platform

/// A word of the control file; the raw value is its place.
///
/// New words take a free place, which is 0 in older files.
enum ControlWord: Int {
    /// ``ControlLayout/magic``.
    case magic = 0
    /// ``ControlLayout/version``.
    case version = 1
    /// The size of the file in bytes.
    case size = 2
    case state = 3
    /// The version of the rules that are in force (`RemovalRules`); 0 if there are none.
    case rulesVersion = 4
    /// The latest creation time that any rule applies to, ms since 1970.
    case latestRule = 5
    /// The number of written records that may take space besides the inodes of their entries, times two; plus one if no
    /// entry takes any.
    case entriesWithSpace = 6
    /// The bytes on disk of entries and objects, and the number of entries, as summed up by all processes.
    case usedBytes = 8
    case usedEntries = 9
    /// 1 if the usage has been counted.
    case isUsageCounted = 10
    /// When the counters were last set to 0, ns since 1970.
    case countedSince = 11
    /// The seal of a complete filter (`ControlMaking.filterSeal`).
    case filterSeal = 12
    /// Bytes on disk besides entries and objects: directories, this file; 0 if not counted yet.
    case overheadBytes = 13
    /// How long the last evicted entry had been unused, ns; 0 before the first eviction.
    case horizon = 14
    /// The number of entries that were replaced or removed since the last mark, whose objects may be orphans.
    case replacedEntries = 15
    /// When an entry was last evicted, ns since 1970.
    case lastEviction = 16
    /// Bytes that writers are about to take: two words that alternate.
    case evenClaims = 17
    case oddClaims = 18
    /// When the present turn began, with the number of the turn in the lower 16 bits.
    case claimTurn = 19
    /// If the words are in memory: the seal of the file that names them (`ControlMaking.pointerSeal`).
    case pointerSeal = 20
    /// The steps of the holder of the `janitor` lock.
    case sweepSteps = 21
    /// The process that last took the lock, and its PID namespace in the upper half.
    case sweepHolder = 22
    /// The latest creation time of any entry, ms since 1970, times two; plus one if it covers all entries.
    case latestCreated = 24
    /// Which keys writers record in the outbox (`RemoteNotes`); 0 if there is no remote store.
    case remoteNotes = 25
    /// Remote entries that were created before this time are not used, ms since 1970; 0 if all are.
    case remoteBarrier = 26
    /// Entries that writers are about to make, like the bytes in ``evenClaims`` and ``oddClaims``.
    case evenEntryClaims = 27
    case oddEntryClaims = 28
    /// 1 if objects take more than their contents, as their blocks are scattered (``Control/noteIndexBlocks(_:)``).
    case indexBlocks = 29
    /// The bytes on disk of the objects of ``replacedEntries``, if known.
    case replacedBytes = 30
    /// The latest creation time of a value from a remote store that was ahead of this machine's clock, ms since 1970; 0 if
    /// there was none.
    case latestRemote = 31
}

/// The layout of the control file, in 64-bit words.
///
/// ```
///      0  single words (ControlWord)
///     32  the hashed names of servers; then the circuit breaker of each (ControlLayout.servers)
///     64  for each object stripe: bytes that were counted for objects that have no name yet
///    128  for each object stripe, then each entry stripe: until when it is wanted exclusively
///    256  keys that were evicted lately (EvictedKeys)
///    512  16 shards of 64 counters (StoreCounters.Event)
///   1536  262,144 generations
/// 263680  the filter of keys: 16,384 blocks of 8 words
/// 394752  the histogram of expiration times (ExpirationHistogram)
/// ```
///
/// Words are in native byte order: a control file is not portable, and is made again if it does not fit.
enum ControlLayout {
    /// "diskctrl".
    static let magic: UInt64 = 0x6469_736b_6374_726c
    /// The version of this layout; a file with another version is replaced.
    static let version: UInt64 = 3

    /// The names of servers, followed by one word for each.
    static let servers = 32
    static let serverCount = 8
    static let unnamed = 64
    static let wanted = 128
    static let evictedKeys = 256
    static let evictedKeyCount = 256
    static let counters = 512
    static let generations = counters + counterShards * counterSlots
    static let filter = generations + generationCount

    /// The number of threads that can count without contention; each shard has its own cache lines.
    static let counterShards = 16
    /// Leaves room for later events.
    static let counterSlots = 64
    /// The number of words, 2 MiB.
    ///
    /// With this many, a key rarely shares its word with another key that is being written: among 100,000 keys with 0.4
    /// others.
    static let generationCount = 1 << generationBits
    static let generationBits = 18
    /// 1 MiB: see ``BloomFilter``.
    static let filterWords = 1 << 17

    /// See ``ExpirationHistogram``; with unused words up to the end of the page.
    static let expirations = filter + filterWords
    static let expirationWords = 512

    static let wordCount = expirations + expirationWords
    static let byteCount = wordCount * 8

    /// The size of a file of words in memory: the path of the directory follows the words, for ``ControlPointer``.
    static let memoryByteCount = byteCount + memoryPathSize
    /// Bytes: PATH_MAX of linux/limits.h.
    static let memoryPathSize = 4096
}

/// The state of a control file, stored in one word.
enum ControlState: UInt64 {
    /// Writers must use it, but a writer that has not seen it may still be publishing: no process may hold values in memory
    /// yet.
    case forming = 1
    /// Every writer uses it.
    case ready = 2
    /// Another file replaces it.
    case superseded = 3
}

extension MappedWords {
    func load(_ word: ControlWord) -> UInt64 { load(word.rawValue) }

    func store(_ value: UInt64, at word: ControlWord) { store(value, at: word.rawValue) }

    func count(_ amount: UInt64, at word: ControlWord) { count(amount, at: word.rawValue) }

    func replace(_ expected: UInt64, by value: UInt64, at word: ControlWord) -> Bool {
        replace(expected, by: value, at: word.rawValue)
    }

    var areReady: Bool { load(.state) == ControlState.ready.rawValue }

    var areSuperseded: Bool { load(.state) == ControlState.superseded.rawValue }
}
