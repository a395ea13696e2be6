// SPDX-License-Identifier: Apache-2.0

import Platform

/// A word of the control file; the raw value is its place.
///
/// What is added later takes a free place: those are 0 in files made before.
enum ControlWord: Int {
    /// ``ControlLayout/magic``.
    case magic = 0
    /// ``ControlLayout/version``.
    case version = 1
    /// Bytes of the file.
    case size = 2
    case state = 3
    /// The version of the rules that are in force (`RemovalRules`); 0: there are none.
    case rulesVersion = 4
    /// The latest time of creation that any of them is meant for, ms since 1970.
    case latestRule = 5
    /// Records written that may take space of their own beside the inodes of their entries, times two; plus one where no
    /// entry takes any.
    case entriesWithSpace = 6
    /// What entries and objects take on disk, as all processes add it up, and how many entries there are.
    case usedBytes = 8
    case usedEntries = 9
    /// 1: it has been counted.
    case isUsageCounted = 10
    /// Since when the counters count, ns since 1970.
    case countedSince = 11
    /// The seal of a complete filter (`ControlMaking.filterSeal`).
    case filterSeal = 12
    /// Bytes on disk beside entries and objects: directories, this file; 0: not counted yet.
    case overheadBytes = 13
    /// For how long, ns, what was evicted last had not been used; 0: nothing was evicted yet.
    case horizon = 14
    /// Entries that were replaced or removed since the last mark, whose objects may be orphans.
    case replacedEntries = 15
    /// When something was evicted last, ns since 1970.
    case lastEviction = 16
    /// What writers are about to take: two words that take turns.
    case evenClaims = 17
    case oddClaims = 18
    /// The turn.
    case claimTurn = 19
    /// Where the words are in memory: the seal of the file that names them (`ControlMaking.pointerSeal`).
    case pointerSeal = 20
    /// Steps of the holder of the `janitor` lock.
    case sweepSteps = 21
    /// That process, and its namespace of processes in the upper half.
    case sweepHolder = 22
    /// The latest time of creation of any entry, ms since 1970, times two; plus one where all entries are reckoned with.
    case latestCreated = 24
    /// Whether writers note their keys in the outbox (`RemoteNotes`); 0: there is no remote tier.
    case remoteNotes = 25
    /// What was created before is not taken from other machines, ms since 1970; 0: everything is.
    case remoteBarrier = 26
    /// Entries that writers are about to make, as ``evenClaims`` and ``oddClaims`` have bytes.
    case evenEntryClaims = 27
    case oddEntryClaims = 28
    /// 1: objects take more than their contents, as their blocks lie apart (``Control/noteIndexBlocks(_:)``).
    case indexBlocks = 29
    /// The bytes on disk of the objects of ``replacedEntries``, as far as they are known.
    case replacedBytes = 30
}

/// Where everything is in the control file, in 64-bit words.
///
/// ```
///      0  single words (ControlWord)
///     32  the names of servers, hashed; then the state of the breaker of each (ControlLayout.servers)
///     64  for each object stripe: bytes that were counted for objects that have no name yet
///    128  for each object stripe, then each entry stripe: until when it is wanted exclusively
///    256  keys that were evicted lately (EvictedKeys)
///    512  16 shards of 64 counters (StoreCounters.Event)
///   1536  262,144 generations
/// 263680  the filter of keys: 16,384 blocks of 8 words
/// 394752  what expires when (ExpirationHistogram)
/// ```
///
/// Words are in the processor's own order: a control file does not travel, and is made anew where it does
/// not fit.
enum ControlLayout {
    /// "diskctrl".
    static let magic: UInt64 = 0x6469_736b_6374_726c
    /// Of this layout; a file with another one is replaced.
    static let version: UInt64 = 3

    /// Names of servers, then a word for each.
    static let servers = 32
    static let serverCount = 8
    static let unnamed = 64
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

    /// See ``ExpirationHistogram``; with room to the end of the page.
    static let expirations = filter + filterWords
    static let expirationWords = 512

    static let wordCount = expirations + expirationWords
    static let byteCount = wordCount * 8

    /// Where the words are in memory, the path of the directory follows them, for ``ControlPointer``.
    static let memoryByteCount = byteCount + memoryPathSize
    /// Bytes: PATH_MAX of linux/limits.h.
    static let memoryPathSize = 4096
}

/// How far a control file is; a word in it.
enum ControlState: UInt64 {
    /// Writers must use it, but somebody may still be publishing who has not seen it: nobody may hold
    /// values in memory yet.
    case forming = 1
    /// Every writer uses it.
    case ready = 2
    /// Another one takes its place.
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
