// SPDX-License-Identifier: Apache-2.0

import Platform

/// A word of the control file; the raw value is its index.
///
/// A new word takes an unused index; its value is 0 in older files.
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
    /// The number of records written so far that may take space outside the inodes of their entries, times two; plus one
    /// if no entry takes such space.
    case entriesWithSpace = 6
    /// The latest version that was drawn or taken from a server (`ChangeVersion`); 0 if the directory has never used remote
    /// stores.
    case clock = 7
    /// The bytes on disk of entries, objects and partial downloads, and, in the next word, the number of entries.
    ///
    /// Each process adds its changes.
    case usedBytes = 8
    case usedEntries = 9
    /// 1 if the usage is complete; 0 if it contains only the changes since the file was created.
    case isUsageCounted = 10
    /// When the counters were last set to 0, ns since 1970.
    case countedSince = 11
    /// The seal of the filter of keys (`ControlMaking.filterSeal`), set when the filter is complete.
    case filterSeal = 12
    /// The bytes on disk of everything that can't be evicted, such as directories and this file; 0 if not counted yet.
    case overheadBytes = 13
    /// How long the last evicted entry had been unused, ns; 0 before the first eviction.
    case horizon = 14
    /// The number of entries that were replaced or removed since the last sweep of all objects began; their objects may
    /// be orphans.
    case replacedEntries = 15
    /// When an entry was last evicted, ns since 1970.
    case lastEviction = 16
    /// The bytes that writers have claimed and are about to use, in two words that alternate from turn to turn.
    case evenClaims = 17
    case oddClaims = 18
    /// When the present turn of the claims began, in milliseconds of CLOCK_MONOTONIC, with the turn's number in the lower
    /// 16 bits.
    case claimTurn = 19
    /// If the words are in shared memory, the seal of the control file that names them (`ControlMaking.pointerSeal`);
    /// otherwise 0.
    case pointerSeal = 20
    /// A counter that the holder of the `janitor` lock increments as it makes progress.
    case sweepSteps = 21
    /// The process that last took the `janitor` lock, with its PID namespace in the upper 32 bits.
    case sweepHolder = 22
    /// The latest creation time that was recorded for an entry, ms since 1970, times two; plus one if no entry is later.
    case latestCreated = 24
    /// 1 if writers record their changes in the outbox, else 0.
    case notesChanges = 25
    /// Values of servers are taken only if their version is higher (`ChangeVersion`); 0 if all may be taken.
    case cleared = 26
    /// The number of entries that writers have claimed and are about to create, in two words like ``evenClaims`` and
    /// ``oddClaims``.
    case evenEntryClaims = 27
    case oddEntryClaims = 28
    /// 1 if objects take more space than their contents because free space is fragmented
    /// (``Control/noteIndexBlocks(_:)``).
    case indexBlocks = 29
    /// The bytes on disk of the objects of ``replacedEntries``, as far as they are known.
    case replacedBytes = 30
}

/// The layout of the control file, in 64-bit words.
///
/// ```
///      0  single words (ControlWord)
///     32  the hashed names of servers; then the circuit breaker of each (ControlLayout.servers)
///     64  for each object stripe: bytes counted for objects that have no name yet
///    128  for each object stripe, then each entry stripe: until when an exclusive waiter reserves it
///    256  recently evicted keys (EvictedKeys)
///    512  16 shards of 64 counters (StoreCounters.Event)
///   1536  262,144 generations
/// 263680  the filter of keys: 16,384 blocks of 8 words
/// 394752  the histogram of expiration times (ExpirationHistogram)
/// ```
///
/// Words are in native byte order: a control file is not portable, and is recreated if its layout does not match.
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
    /// The number of counters in a shard; some are unused and reserved for later events.
    static let counterSlots = 64
    /// The number of generation words, which take 2 MiB.
    ///
    /// With this many, a key rarely shares its word with another key that is being written: with 100,000 keys, each key
    /// shares its word with 0.4 others on average.
    static let generationCount = 1 << generationBits
    static let generationBits = 18
    /// The number of words of the ``BloomFilter``, which take 1 MiB.
    static let filterWords = 1 << 17

    /// The first word of the ``ExpirationHistogram``; unused words follow it up to the end of the page.
    static let expirations = filter + filterWords
    static let expirationWords = 512

    static let wordCount = expirations + expirationWords
    static let byteCount = wordCount * 8

    /// The size in bytes of a file of words in shared memory: the words, then the directory's path (``ControlPointer``).
    static let memoryByteCount = byteCount + memoryPathSize
    /// In bytes: PATH_MAX of linux/limits.h.
    static let memoryPathSize = 4096
}

/// The state of a control file, stored in one word.
enum ControlState: UInt64 {
    /// Writers must use the file, but a writer that has not found it yet may still be publishing, so no process may hold
    /// values in memory.
    case forming = 1
    /// Every writer uses the file.
    case ready = 2
    /// Another control file replaces this one.
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
