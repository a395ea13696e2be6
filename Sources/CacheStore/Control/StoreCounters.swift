// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a process did with a store since it opened it, and, in the control file, what all did.
///
/// Always on: adding is two atomic additions to cache lines that hardly another thread uses, no call.
package final class StoreCounters: Sendable {
    /// Something that is counted.
    ///
    /// The raw value is the place in the control file: new ones are added at the end of their group, none
    /// changes its number or is used again. There are ``ControlLayout/counterSlots`` places.
    package enum Event: Int, CaseIterable, Sendable {
        // MARK: Reading and writing

        /// A value given out from memory.
        case memoryHit = 0
        /// A value given out from disk.
        case hit = 1
        /// An expired value given to a caller that asked for stale ones.
        case staleHit = 2
        case miss = 3
        case put = 4
        /// A key removed because somebody said so.
        case removal = 5
        /// Bytes of values read from disk, and written to it.
        case bytesRead = 6
        case bytesWritten = 7

        // MARK: Computing

        /// A computation that was begun, in the background or not.
        case computation = 8
        /// A wait for another computation, in this process or another.
        case wait = 9
        /// A computation begun in the background, for a value that has expired or soon will.
        case refresh = 10
        /// A computation that failed.
        case computeFailure = 11
        /// A value that was computed without the cache, which could not be read, locked or written.
        case cacheFailure = 12
        /// A miss of a key for which it was noted that there is nothing.
        case negativeHit = 13

        // MARK: Many keys at once

        /// A rule that was put in force: it removed many keys, or had them expire.
        case removalRule = 15

        // MARK: Faults

        /// A record that did not parse.
        case corruptRecord = 16
        /// An object whose bytes were not those that its record promises.
        case corruptObject = 17
        /// A record whose object was gone, twice in a row.
        case dangling = 18
        /// An access time that could not be set.
        case accessFailure = 19
        /// Something damaged that a reader could not remove at once.
        case repairFailure = 20
        /// A value accepted for writing later that could not be stored then.
        case publishFailure = 21
        /// A control file that could not be made or mapped.
        case controlFailure = 22

        // MARK: Limits

        /// A put that had to wait for room.
        case roomWait = 24
        /// A put that didn't get any.
        case roomFailure = 25
        /// A miss, of those that are sampled, on a key that was evicted lately.
        case ghostHit = 26
        /// An eviction of what was used within ``EvictedKeys/youth``.
        case evictedYoung = 27

        // MARK: Sweeping

        /// A sweep that ran to its end, other than for show.
        case sweep = 32
        /// What sweeps removed, by ``RemovalReason``.
        case sweptTemporary = 33
        case sweptExpired = 34
        case sweptDangling = 35
        case sweptCorrupt = 36
        case sweptOrphan = 37
        case sweptAge = 38
        case sweptIdle = 39
        case sweptEntries = 40
        case sweptSize = 41
        case sweptFreeSpace = 42
        case sweptCleared = 43

        // MARK: Leaving memory

        /// Values that left the memory of a process, by cause.
        case memoryExpired = 48
        case memoryCost = 49
        case memoryCount = 50
        case memoryInvalidated = 51
        case memoryReplaced = 52
        case memoryExplicit = 53
        case memoryPressure = 54

        // MARK: Other machines' stores

        /// A value that another machine's store had.
        case remoteHit = 55
        /// A look at all that were to be asked, in vain.
        case remoteMiss = 56
        /// A request that failed.
        case remoteError = 57
        /// A request that was not answered in time.
        case remoteSlow = 58
        /// A value that was not what its digest says.
        case remoteWrong = 59
        /// A look that asked nobody: no server that may be asked, no time left, work in the outbox.
        case remoteSkipped = 60
        /// A key that a store on another machine was told of.
        case remoteWritten = 61
        /// Bytes of values that came from there, and that went there.
        case remoteBytesReceived = 62
        case remoteBytesSent = 63
        /// A key that was to be told and was not: the outbox was full, or the server wants it not.
        case remoteDropped = 44
    }

    private let own: WordBlock
    private let control: Control

    /// Counts in `control`, and for this process from 0 or from where `others` are.
    init(in control: Control, continuing others: StoreCounters? = nil) {
        self.control = control
        own = others?.own ?? WordBlock(count: ControlLayout.counterShards * ControlLayout.counterSlots)
    }

    /// Counts, here and for all processes together where there is a control file that can be written.
    package func add(_ event: Event, _ amount: Int = 1) {
        let place = Self.place(of: event)
        own.words.count(UInt64(bitPattern: Int64(amount)), at: place)
        control.writableWords?.count(UInt64(bitPattern: Int64(amount)), at: ControlLayout.counters + place)
    }

    /// Counts one for all processes together and not here: what this process counts somewhere else.
    @inline(__always)
    package func addForAll(_ event: Event) {
        control.writableWords?.count(1, at: ControlLayout.counters + Self.place(of: event))
    }

    private static func place(of event: Event) -> Int {
        threadNumber % ControlLayout.counterShards * ControlLayout.counterSlots + event.rawValue
    }

    /// What this process counted.
    package subscript(event: Event) -> Int {
        Self.sum(event.rawValue, in: own.words, from: 0)
    }

    fileprivate static func sum(_ slot: Int, in words: MappedWords, from start: Int) -> Int {
        var sum: UInt64 = 0
        for shard in 0..<ControlLayout.counterShards {
            sum &+= words.load(start + shard * ControlLayout.counterSlots + slot)
        }
        // Whoever can write the file can write anything there; nothing is ever counted down.
        return Int(max(0, Int64(bitPattern: sum).plausible))
    }
}

/// What all processes counted, dead ones included, since the control file was made or reset.
package struct CumulativeCounts: Sendable {
    private let counts: [Int]

    init(in words: MappedWords) {
        counts = (0..<ControlLayout.counterSlots).map {
            StoreCounters.sum($0, in: words, from: ControlLayout.counters)
        }
    }

    package subscript(event: StoreCounters.Event) -> Int { counts[event.rawValue] }
}
