// SPDX-License-Identifier: Apache-2.0

import Platform

/// Counts of the events of a store: those of this process since it opened the store, and, in the control file, those of all
/// processes.
///
/// Counting is always on: it takes two atomic additions to cache lines that other threads rarely use, and no system call.
package final class StoreCounters: Sendable {
    /// A counted event.
    ///
    /// The raw value is the index in the control file. New events are added at the end of their group; numbers are never
    /// changed or reused. There are ``ControlLayout/counterSlots`` places.
    package enum Event: Int, CaseIterable, Sendable {
        // MARK: Reading and writing

        /// A value returned from memory.
        case memoryHit = 0
        /// A value returned from disk.
        case hit = 1
        /// An expired value returned to a caller that asked for stale ones.
        case staleHit = 2
        case miss = 3
        case put = 4
        /// A key that was removed on request.
        case removal = 5
        /// Bytes of values read from disk, and written to it.
        case bytesRead = 6
        case bytesWritten = 7

        // MARK: Computing

        /// A computation that was started, in the background or not.
        case computation = 8
        /// A wait for another computation, in this process or another.
        case wait = 9
        /// A computation started in the background, for a value that has expired or soon will.
        case refresh = 10
        /// A computation that failed.
        case computeFailure = 11
        /// A value that was computed without the cache, because it could not be read, locked or written.
        case cacheFailure = 12
        /// A miss of a key for which it is recorded that there is no value.
        case negativeHit = 13

        // MARK: Many keys at once

        /// A rule that was put in force: it removed or expired many keys.
        case removalRule = 15

        // MARK: Faults

        /// A record that did not parse.
        case corruptRecord = 16
        /// An object whose bytes do not match its record.
        case corruptObject = 17
        /// A record whose object was missing twice in a row.
        case dangling = 18
        /// An access time that could not be set.
        case accessFailure = 19
        /// Damage that a reader could not remove at once.
        case repairFailure = 20
        /// A value accepted for writing later that could not be stored then.
        case publishFailure = 21
        /// A control file that could not be made or mapped.
        case controlFailure = 22

        // MARK: Limits

        /// A put that had to wait for room.
        case roomWait = 24
        /// A put that didn't get room.
        case roomFailure = 25
        /// A sampled miss on a key that was evicted recently.
        case ghostHit = 26
        /// An eviction of an entry that was used within ``EvictedKeys/youth``.
        case evictedYoung = 27

        // MARK: Sweeping

        /// A completed sweep, other than a dry run.
        case sweep = 32
        /// Removals by sweeps, by ``RemovalReason``.
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

        // MARK: Remote stores

        /// A value that a remote store had.
        case remoteHit = 55
        /// A miss in all remote stores that answered.
        case remoteMiss = 56
        /// A request that failed.
        case remoteError = 57
        /// A request that was not answered in time.
        case remoteSlow = 58
        /// A value that does not match its digest.
        case remoteWrong = 59
        /// A lookup that asked no server: no server may be asked, no time is left, or the outbox has pending work.
        case remoteSkipped = 60
        /// A key whose change was sent to a remote store.
        case remoteWritten = 61
        /// Bytes of values received from remote stores, and sent to them.
        case remoteBytesReceived = 62
        case remoteBytesSent = 63
        /// A key whose change was not sent: the outbox was full, or the server refused it.
        case remoteDropped = 44
    }

    private let own: WordBlock
    private let control: Control

    /// Creates counters that count all processes' events in `control`, and this process's events from 0 or from the counts
    /// of `others`.
    init(in control: Control, continuing others: StoreCounters? = nil) {
        self.control = control
        own = others?.own ?? WordBlock(count: ControlLayout.counterShards * ControlLayout.counterSlots)
    }

    /// Counts an event for this process, and for all processes if the control file can be written.
    package func add(_ event: Event, _ amount: Int = 1) {
        let place = Self.place(of: event)
        own.words.count(UInt64(bitPattern: Int64(amount)), at: place)
        control.writableWords?.count(UInt64(bitPattern: Int64(amount)), at: ControlLayout.counters + place)
    }

    /// Counts one event for all processes but not for this one, which counts it elsewhere.
    @inline(__always)
    package func addForAll(_ event: Event) {
        control.writableWords?.count(1, at: ControlLayout.counters + Self.place(of: event))
    }

    private static func place(of event: Event) -> Int {
        threadNumber % ControlLayout.counterShards * ControlLayout.counterSlots + event.rawValue
    }

    /// The count of this process.
    package subscript(event: Event) -> Int {
        Self.sum(event.rawValue, in: own.words, from: 0)
    }

    fileprivate static func sum(_ slot: Int, in words: MappedWords, from start: Int) -> Int {
        var sum: UInt64 = 0
        for shard in 0..<ControlLayout.counterShards {
            sum &+= words.load(start + shard * ControlLayout.counterSlots + slot)
        }
        // Any process that can write the file can store an arbitrary number. Valid counts are never negative, as no count
        // decreases.
        return Int(max(0, Int64(bitPattern: sum).plausible))
    }
}

/// The counts of all processes, dead ones included, since the control file was made or reset.
package struct CumulativeCounts: Sendable {
    private let counts: [Int]

    init(in words: MappedWords) {
        counts = (0..<ControlLayout.counterSlots).map {
            StoreCounters.sum($0, in: words, from: ControlLayout.counters)
        }
    }

    package subscript(event: StoreCounters.Event) -> Int { counts[event.rawValue] }
}
