// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The usage of a cache on disk: the sum of what all its processes have added and subtracted.
///
/// An estimate that each full sweep corrects.
package struct StoreUsage: Sendable, Equatable {
    /// Bytes that the file system has allocated to entries, objects and partial downloads.
    package var bytes: Int64
    package var entries: Int
    /// False if no sweep has counted since the control file was created: then the numbers are only the changes since that
    /// time.
    package var isCounted: Bool

    /// The bytes, or 0 if the sum is negative.
    var plausibleBytes: Int64 { max(0, bytes) }
    var plausibleEntries: Int { max(0, entries) }
}

extension Int64 {
    /// 64 PiB: sums of such numbers don't overflow.
    private static var most: Int64 { 1 << 56 }

    /// The number, limited to ±64 PiB: for numbers from a file that others can write.
    var plausible: Int64 { Swift.min(Swift.max(-Self.most, self), Self.most) }
}

/// The room on disk that a writer is about to take, as all processes see it.
struct RoomClaim {
    let bytes: Int64
    let entries: Int
    fileprivate let turn: UInt16
    fileprivate let words: MappedWords

    fileprivate var bytesWord: ControlWord { turn & 1 == 0 ? .evenClaims : .oddClaims }
    fileprivate var entriesWord: ControlWord { turn & 1 == 0 ? .evenEntryClaims : .oddEntryClaims }
}

/// The sum of the claims of all writers.
struct ClaimedRoom: Equatable {
    var bytes: Int64 = 0
    var entries = 0
}

/// The sum of the claims of one turn: the turn's number, modulo 65,536, in the upper 16 bits, bytes or entries below.
private struct ClaimWord {
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    /// 256 TiB at most: more is counted as that.
    init(turn: UInt16, amount: Int64) {
        rawValue = UInt64(turn) << 48 | UInt64(min(max(0, amount), Self.most))
    }

    private static let most: Int64 = 1 << 48 - 1

    var turn: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 48) }
    var amount: Int64 { Int64(rawValue & UInt64(Self.most)) }

    /// Whether it counts in turn `present`: the claims of a turn and of the one before count.
    func counts(in present: UInt16) -> Bool { present &- turn <= 1 }
}

extension Control {
    /// The number in a word; nil if no control file is mapped.
    ///
    /// Setting it has no effect if the file can't be written.
    private subscript(word: ControlWord) -> Int64? {
        get { words.map { Int64(bitPattern: $0.load(word)) } }
        set {
            if let newValue { writableWords?.store(UInt64(bitPattern: newValue), at: word) }
        }
    }

    /// The number in a word in which 0 means that nothing was noted yet.
    private func noted(_ word: ControlWord) -> Int64? { self[word].flatMap { $0 == 0 ? nil : $0 } }

    /// The usage of the cache; nil if no control file is mapped.
    package var usage: StoreUsage? {
        guard var usage = recordedUsage else { return nil }
        usage.bytes = usage.bytes.plausible
        usage.entries = Int(Int64(usage.entries).plausible)
        return usage
    }

    /// The words unchanged, for a recount, which corrects any error in them.
    var recordedUsage: StoreUsage? {
        guard let words else { return nil }
        return StoreUsage(
            bytes: Int64(bitPattern: words.load(.usedBytes)),
            entries: Int(Int64(bitPattern: words.load(.usedEntries))),
            isCounted: words.load(.isUsageCounted) != 0
        )
    }

    /// Adds allocated bytes and new entries; negative numbers subtract.
    func addUsage(bytes: Int64, entries: Int) {
        guard let words = writableWords else { return }
        if bytes != 0 { words.count(UInt64(bitPattern: bytes), at: .usedBytes) }
        if entries != 0 { words.count(UInt64(bitPattern: Int64(entries)), at: .usedEntries) }
    }

    // MARK: Objects without names

    /// Adds the size of an object before the writer counts and names it.
    ///
    /// The writer calls it again, with the negative size, once the object has its name or was given up.
    ///
    /// The caller holds the object's stripe shared from the first call to the second.
    func noteUnnamed(_ bytes: Int64, stripe: Int) {
        writableWords?.count(UInt64(bitPattern: bytes), at: ControlLayout.unnamed + stripe)
    }

    /// Sets the stripe's word to 0: writers that were killed have left their bytes in it.
    ///
    /// The caller holds the stripe exclusively.
    func forgetUnnamed(stripe: Int) {
        writableWords?.store(0, at: ControlLayout.unnamed + stripe)
    }

    /// The bytes of all objects that are counted and have no name yet.
    var unnamedBytes: Int64 {
        guard let words else { return 0 }
        return (0..<StoreLayout.stripeCount).reduce(0) { sum, stripe in
            sum + max(0, Int64(bitPattern: words.load(ControlLayout.unnamed + stripe)).plausible)
        }
    }

    /// Whether no entry takes space besides its inode; true also if no control file is mapped, as there is no usage then.
    var entriesTakeNoSpace: Bool { words.map { $0.load(.entriesWithSpace) & 1 == 1 } ?? true }

    /// Notes that a record is about to be written that may take space besides its entry's inode.
    ///
    /// The writer holds the stripe of the record's object.
    func noteEntryWithSpace() {
        guard let words = writableWords else { return }
        while true {
            let word = words.load(.entriesWithSpace)
            if words.replace(word, by: (word & ~1) &+ 2, at: .entriesWithSpace) { return }
        }
    }

    /// A number that changes with each record that may take space besides its entry's inode.
    var recordsWithSpace: UInt64? { words?.load(.entriesWithSpace) }

    /// Notes that no entry takes space besides its inode, unless ``recordsWithSpace`` is no longer `number`.
    func noteNoEntryWithSpace(since number: UInt64) {
        _ = writableWords?.replace(number, by: number | 1, at: .entriesWithSpace)
    }

    func noteUsageIsCounted() { self[.isUsageCounted] = 1 }

    /// Bytes on disk of the directories and of the files in the root, as the last sweep found them; nil before the first
    /// sweep.
    var overhead: Int64? { noted(.overheadBytes).map { max(0, $0.plausible) } }

    func noteOverhead(bytes: Int64) { self[.overheadBytes] = bytes }

    // MARK: Claims

    /// Claims room for a writer; returns nil if no control file is mapped.
    ///
    /// Two words alternate in holding the sum of the claims, each with the number of its turn. A claim of a killed or
    /// stopped process is never given back: it is forgotten when the turn after its own ends. A slow writer claims again
    /// before it publishes (``isStanding(_:)``). Giving back a forgotten claim has no effect.
    func claim(_ bytes: Int64, entries: Int = 0) -> RoomClaim? {
        guard let words = writableWords else { return nil }
        let bytes = max(0, bytes)
        while true {
            let turn = presentTurn(words)
            let claim = RoomClaim(bytes: bytes, entries: entries, turn: turn, words: words)
            guard Self.add(bytes, to: claim.bytesWord, turn, words) else { continue }
            if entries == 0 || Self.add(Int64(entries), to: claim.entriesWord, turn, words) { return claim }
            Self.subtract(bytes, from: claim.bytesWord, turn, words)
        }
    }

    /// Adds to the claims of a turn; returns false if another turn has begun.
    private static func add(_ amount: Int64, to place: ControlWord, _ turn: UInt16, _ words: MappedWords)
        -> Bool
    {
        while true {
            let word = words.load(place)
            // Checked after the word was loaded: the word may be of a later turn.
            guard Self.turn(words) == turn else { return false }
            let present = ClaimWord(rawValue: word)
            let sum = (present.turn == turn ? present.amount : 0).addingReportingOverflow(amount)
            let next = ClaimWord(turn: turn, amount: sum.overflow ? .max : sum.partialValue)
            if words.replace(word, by: next.rawValue, at: place) { return true }
        }
    }

    /// Subtracts from the claims of a turn, down to 0.
    private static func subtract(
        _ amount: Int64,
        from place: ControlWord,
        _ turn: UInt16,
        _ words: MappedWords
    ) {
        while true {
            let word = words.load(place)
            let present = ClaimWord(rawValue: word)
            guard present.turn == turn else { return }
            let rest = ClaimWord(turn: turn, amount: present.amount - amount)
            if words.replace(word, by: rest.rawValue, at: place) { return }
        }
    }

    /// Returns the number of the present turn, after beginning the next one if its time is over.
    ///
    /// - Parameter clock: Milliseconds that never run back while the machine is up.
    func presentTurn(_ words: MappedWords, clock: () -> UInt64 = { Timestamp.monotonicMilliseconds })
        -> UInt16
    {
        // Load the word before the time. If this thread is preempted between the two, the turn seems older than it is, but
        // then another turn has begun and the word is not replaced. In the other order a turn that another thread has begun
        // meanwhile would seem to be from an earlier boot.
        let word = words.load(.claimTurn)
        let now = clock()
        // The upper bits are the time when the turn began, perhaps in an earlier boot.
        let began = word >> 16
        let age = now < began ? .max : now - began
        if age >= Self.claimTurn {
            // If no process has claimed anything for a turn, both words are forgotten. The step is odd, as the words
            // alternate.
            let step: UInt16 = age / 2 >= Self.claimTurn ? 3 : 1
            let next = UInt16(truncatingIfNeeded: word) &+ step
            _ = words.replace(word, by: now << 16 | UInt64(next), at: .claimTurn)
        }
        return Self.turn(words)
    }

    private static func turn(_ words: MappedWords) -> UInt16 {
        UInt16(truncatingIfNeeded: words.load(.claimTurn))
    }

    /// Milliseconds: a quarter of a second, in which 100 MB are written on most disks.
    ///
    /// A longer write claims again before it publishes. Two turns are shorter than the time that a put waits for a stopped
    /// process (``JanitorWait``), so the claims of stopped processes fail no put.
    static let claimTurn: UInt64 = 250

    /// Returns whether the claim still counts.
    func isStanding(_ claim: RoomClaim) -> Bool {
        let word = ClaimWord(rawValue: claim.words.load(claim.bytesWord))
        return word.turn == claim.turn && word.counts(in: Self.turn(claim.words))
    }

    /// Ends a claim.
    ///
    /// It has no effect if the claim was forgotten.
    func giveBack(_ claim: RoomClaim) {
        Self.subtract(claim.bytes, from: claim.bytesWord, claim.turn, claim.words)
        if claim.entries > 0 {
            Self.subtract(Int64(claim.entries), from: claim.entriesWord, claim.turn, claim.words)
        }
    }

    /// The sum of the claims of all writers.
    var claimed: ClaimedRoom {
        guard let words else { return ClaimedRoom() }
        // Begins the next turn if it is due: without new claims the claims of killed writers would never be forgotten.
        let turn = writableWords.map { presentTurn($0) } ?? Self.turn(words)
        func amount(_ place: ControlWord) -> Int64 {
            let word = ClaimWord(rawValue: words.load(place))
            return word.counts(in: turn) ? word.amount : 0
        }
        return ClaimedRoom(
            bytes: amount(.evenClaims) + amount(.oddClaims),
            entries: Int(amount(.evenEntryClaims) + amount(.oddEntryClaims))
        )
    }

    /// The claimed bytes.
    var claimedBytes: Int64 { claimed.bytes }

    // MARK: Progress of the janitor

    /// Notes that this process, which holds the `janitor` lock, makes progress.
    func noteSweepStep() {
        writableWords?.count(1, at: .sweepSteps)
    }

    /// Notes that this process holds the `janitor` lock.
    func noteSweepHolder() {
        self[.sweepHolder] = Int64(CurrentProcess.namespace) << 32 | Int64(CurrentProcess.identifier)
        noteSweepStep()
    }

    /// A number that changes as the holder of the `janitor` lock makes progress; nil if no control file is mapped.
    var sweepSteps: UInt64? { words?.load(.sweepSteps) }

    /// The process that last took the `janitor` lock; nil if it is unknown, or in another PID namespace.
    var sweepHolder: Int32? {
        let (namespace, word) = (CurrentProcess.namespace, self[.sweepHolder] ?? 0)
        guard namespace != 0, UInt32(truncatingIfNeeded: word >> 32) == namespace else { return nil }
        let identifier = Int32(truncatingIfNeeded: word)
        return identifier > 0 ? identifier : nil
    }

    // MARK: Eviction

    /// How long the last evicted entry had been unused; nil before the first eviction.
    ///
    /// A fraction of it is precise enough for access times.
    package var horizon: Duration? {
        noted(.horizon).map { .nanoseconds($0 < 0 ? .max : $0) }
    }

    func noteHorizon(_ horizon: Duration, at now: Timestamp = .now) {
        self[.horizon] = max(1, horizon.saturatingNanoseconds)
        self[.lastEviction] = now.nanoseconds
    }

    /// The longest time for which the next entry to be evicted can have been unused; nil if it is not known.
    ///
    /// The ``horizon`` and the time since the last eviction; before the first one, the age of the control file.
    var expectedHorizon: Duration? {
        guard let begin = noted(.lastEviction) ?? file?.birthTime, words != nil, begin > 0 else { return nil }
        return (horizon ?? .zero) + max(.zero, Timestamp.now - Timestamp(nanoseconds: begin))
    }

    /// The number of entries that were replaced or removed since the last mark: that many objects may be orphans.
    ///
    /// The word unchanged: a sweep subtracts all of it.
    var replacedEntries: Int { Int(self[.replacedEntries] ?? 0) }

    /// The bytes on disk of their objects, if known.
    var replacedBytes: Int64 { max(0, (self[.replacedBytes] ?? 0).plausible) }

    /// Notes that an entry was replaced or removed.
    ///
    /// - Parameter bytes: the size on disk of its object; 0 if it is not known, or if another entry names the object.
    func noteReplacement(bytes: Int64) {
        guard let words = writableWords else { return }
        words.count(1, at: .replacedEntries)
        if bytes != 0 { words.count(UInt64(bitPattern: bytes), at: .replacedBytes) }
    }

    /// The garbage counts at the beginning of a sweep, which are subtracted at its end.
    struct GarbageMark {
        fileprivate let words: MappedWords
        fileprivate let entries: UInt64
        fileprivate let bytes: UInt64
        fileprivate let expired: ExpirationHistogram.Mark
    }

    /// Returns the present garbage counts; nil if the control file can't be written.
    func markGarbage(at now: Timestamp) -> GarbageMark? {
        writableWords.map {
            GarbageMark(
                words: $0,
                entries: $0.load(.replacedEntries),
                bytes: $0.load(.replacedBytes),
                expired: ExpirationHistogram(in: $0).mark(at: now)
            )
        }
    }

    /// Subtracts the counts of garbage that a sweep has removed.
    func forgetGarbage(_ mark: GarbageMark?) {
        guard let mark else { return }
        mark.words.count(0 &- mark.entries, at: .replacedEntries)
        mark.words.count(0 &- mark.bytes, at: .replacedBytes)
        ExpirationHistogram(in: mark.words).forget(mark.expired)
    }

    /// Returns the entries that are known to have expired since the last sweep.
    func expired(by now: Timestamp) -> ExpirationHistogram.Amount {
        words.map { ExpirationHistogram(in: $0).expired(by: now) } ?? ExpirationHistogram.Amount()
    }

    /// Counts a written entry in the expiration histogram; `sign` is −1 for an entry that was replaced or removed.
    ///
    /// - Parameter moment: ``Record/removableAt``.
    func countExpiration(_ sign: Int64, length: Int, created: Timestamp, at moment: Timestamp?) {
        guard let moment, let words = writableWords else { return }
        ExpirationHistogram(in: words).count(
            sign,
            bytes: expectedAllocation(of: length),
            expiring: moment,
            lifetime: moment - created
        )
    }

    /// Notes that the entry with this record was removed.
    func noteRemoval(of record: Record) {
        let length = record.content.length
        noteReplacement(bytes: expectedAllocation(of: length))
        countExpiration(-1, length: length, created: record.created, at: record.removableAt)
    }

    /// When the counters were last set to 0; nil if no control file is mapped, or it does not have the time.
    package var countedSince: Timestamp? { noted(.countedSince).map(Timestamp.init(nanoseconds:)) }

    /// Sets the counters of all processes to 0; returns false if the control file can't be written.
    ///
    /// An event that another process counts at the same moment may be lost.
    package func resetCounters(now: Timestamp) -> Bool {
        guard let words = writableWords else { return false }
        for index in ControlLayout.counters..<ControlLayout.generations { words.store(0, at: index) }
        words.store(UInt64(bitPattern: now.nanoseconds), at: .countedSince)
        return true
    }

    /// Returns the word in which a process notes that it waits for a stripe exclusively, so that others yield to it.
    func wantedWord(_ tree: Tree, _ stripe: Int) -> MappedWord? {
        let offset = tree == .objects ? 0 : StoreLayout.stripeCount
        return writableWords.map { MappedWord(ControlLayout.wanted + offset + stripe, of: $0) }
    }
}
