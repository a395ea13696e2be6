// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What a cache takes on disk, as the processes that use it have added up.
///
/// An estimate: each full sweep counts anew.
package struct StoreUsage: Sendable, Equatable {
    /// Bytes that entries and objects have been given by the file system.
    package var bytes: Int64
    package var entries: Int
    /// False for a control file that was made anew and has seen no sweep: then it tells of the time since.
    package var isCounted: Bool

    /// The same as far as there can be so much.
    var plausibleBytes: Int64 { max(0, bytes) }
    var plausibleEntries: Int { max(0, entries) }
}

extension Int64 {
    /// 64 PiB, or as many of anything: what adds up to no overflow.
    private static var most: Int64 { 1 << 56 }

    /// The next number to this one that may be meant: for those that are read from a file which others can write.
    var plausible: Int64 { Swift.min(Swift.max(-Self.most, self), Self.most) }
}

/// What a writer is about to take on disk, as all processes see it.
struct RoomClaim {
    let bytes: Int64
    let entries: Int
    fileprivate let turn: UInt16
    fileprivate let words: MappedWords

    fileprivate var bytesWord: ControlWord { turn & 1 == 0 ? .evenClaims : .oddClaims }
    fileprivate var entriesWord: ControlWord { turn & 1 == 0 ? .evenEntryClaims : .oddEntryClaims }
}

/// All that writers are about to take.
struct ClaimedRoom: Equatable {
    var bytes: Int64 = 0
    var entries = 0
}

/// What was claimed in one turn: the turn's number, modulo 65,536, in the upper 16 bits, bytes or entries below.
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

    /// Whether it counts in that turn: claims of a turn and of the one before it do.
    func counts(in present: UInt16) -> Bool { present &- turn <= 1 }
}

extension Control {
    /// A word that holds a number; nil where no control file is mapped, and set to nothing where none can be written.
    private subscript(word: ControlWord) -> Int64? {
        get { words.map { Int64(bitPattern: $0.load(word)) } }
        set {
            if let newValue { writableWords?.store(UInt64(bitPattern: newValue), at: word) }
        }
    }

    /// The same where 0 says that nothing was noted yet.
    private func noted(_ word: ControlWord) -> Int64? { self[word].flatMap { $0 == 0 ? nil : $0 } }

    /// What the cache takes on disk, as added up since the last sweep; nil where no control file is mapped.
    package var usage: StoreUsage? {
        guard var usage = recordedUsage else { return nil }
        usage.bytes = usage.bytes.plausible
        usage.entries = Int(Int64(usage.entries).plausible)
        return usage
    }

    /// The words as they are, for a recount, which has to take off all that is wrong.
    var recordedUsage: StoreUsage? {
        guard let words else { return nil }
        return StoreUsage(
            bytes: Int64(bitPattern: words.load(.usedBytes)),
            entries: Int(Int64(bitPattern: words.load(.usedEntries))),
            isCounted: words.load(.isUsageCounted) != 0
        )
    }

    /// Adds what was allocated, or was freed where it is negative.
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

    /// Whether no entry takes space of its own beside its inode; true also where no control file is mapped, as then nobody
    /// counts.
    var entriesTakeNoSpace: Bool { words.map { $0.load(.entriesWithSpace) & 1 == 1 } ?? true }

    /// Says that a record is about to be written that may take space of its own.
    ///
    /// The writer holds the stripe of the record's object.
    func noteEntryWithSpace() {
        guard let words = writableWords else { return }
        while true {
            let word = words.load(.entriesWithSpace)
            if words.replace(word, by: (word & ~1) &+ 2, at: .entriesWithSpace) { return }
        }
    }

    /// Changes with each record that may take space of its own.
    var recordsWithSpace: UInt64? { words?.load(.entriesWithSpace) }

    /// Says that no entry takes space of its own, if none that may was written since that was the number.
    func noteNoEntryWithSpace(since number: UInt64) {
        _ = writableWords?.replace(number, by: number | 1, at: .entriesWithSpace)
    }

    func noteUsageIsCounted() { self[.isUsageCounted] = 1 }

    /// Bytes on disk beside entries and objects: the directories, the control file and the others in the root, as
    /// the last sweep found them; nil where none has looked yet.
    var overhead: Int64? { noted(.overheadBytes).map { max(0, $0.plausible) } }

    func noteOverhead(bytes: Int64) { self[.overheadBytes] = bytes }

    // MARK: Claims

    /// Adds to what writers are about to take; nil where no control file is mapped.
    ///
    /// Claims are added up in two words that take turns, each with the number of its turn. So those of killed or stopped
    /// processes, which nobody gives back, are forgotten once the turn after theirs is over. Whoever takes longer claims
    /// again before it publishes (``isStanding(_:)``), and what is given back late is given back to nobody.
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

    /// False where another turn has begun.
    private static func add(_ amount: Int64, to place: ControlWord, _ turn: UInt16, _ words: MappedWords)
        -> Bool
    {
        while true {
            let word = words.load(place)
            // Before the word was loaded: else it may be one of a later turn.
            guard Self.turn(words) == turn else { return false }
            let present = ClaimWord(rawValue: word)
            let sum = (present.turn == turn ? present.amount : 0).addingReportingOverflow(amount)
            let next = ClaimWord(turn: turn, amount: sum.overflow ? .max : sum.partialValue)
            if words.replace(word, by: next.rawValue, at: place) { return true }
        }
    }

    /// Never more than there is of that turn.
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

    /// The number of the present turn; begins the next where it is over.
    ///
    /// - Parameter clock: milliseconds that never run back while the machine is up.
    func presentTurn(_ words: MappedWords, clock: () -> UInt64 = { Timestamp.monotonicMilliseconds })
        -> UInt16
    {
        // The word first. Where this thread is held up between the two, the turn may seem older than it is, but then
        // another has begun and the word is not replaced. The other way round a turn that another has begun meanwhile
        // would seem to be of an earlier boot.
        let word = words.load(.claimTurn)
        let now = clock()
        // In the upper bits when it began; a boot may have passed since.
        let began = word >> 16
        let age = now < began ? .max : now - began
        if age >= Self.claimTurn {
            // Where nobody has claimed anything for a turn both are forgotten. Odd, as the places take turns.
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
    /// What takes longer is claimed again when it is written. Two turns are less than anybody waits for one who does not
    /// move (``JanitorWait``): claims of stopped processes fail no put.
    static let claimTurn: UInt64 = 250

    /// Whether the claim counts still.
    func isStanding(_ claim: RoomClaim) -> Bool {
        let word = ClaimWord(rawValue: claim.words.load(claim.bytesWord))
        return word.turn == claim.turn && word.counts(in: Self.turn(claim.words))
    }

    /// Takes off what was claimed, if it counts still; never more than there is.
    func giveBack(_ claim: RoomClaim) {
        Self.subtract(claim.bytes, from: claim.bytesWord, claim.turn, claim.words)
        if claim.entries > 0 {
            Self.subtract(Int64(claim.entries), from: claim.entriesWord, claim.turn, claim.words)
        }
    }

    /// What writers are about to take.
    var claimed: ClaimedRoom {
        guard let words else { return ClaimedRoom() }
        // Where nobody claims anything any more turns have to go on all the same, or claims of the dead would stay.
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

    /// Bytes of that.
    var claimedBytes: Int64 { claimed.bytes }

    // MARK: Who makes room

    /// Tells that who holds the `janitor` lock, this process, gets on.
    func noteSweepStep() {
        writableWords?.count(1, at: .sweepSteps)
    }

    /// Says who holds the `janitor` lock.
    func noteSweepHolder() {
        self[.sweepHolder] = Int64(CurrentProcess.namespace) << 32 | Int64(CurrentProcess.identifier)
        noteSweepStep()
    }

    /// Another number each time that who holds the `janitor` lock has got on; nil where no control file is mapped.
    var sweepSteps: UInt64? { words?.load(.sweepSteps) }

    /// The process that took the `janitor` lock last; nil if unknown, or in another namespace of processes.
    var sweepHolder: Int32? {
        let (namespace, word) = (CurrentProcess.namespace, self[.sweepHolder] ?? 0)
        guard namespace != 0, UInt32(truncatingIfNeeded: word >> 32) == namespace else { return nil }
        let identifier = Int32(truncatingIfNeeded: word)
        return identifier > 0 ? identifier : nil
    }

    // MARK: Eviction

    /// For how long what was evicted last had not been used; nil where nothing was evicted yet.
    ///
    /// Accesses need be noted no more exactly than by a part of that.
    package var horizon: Duration? {
        noted(.horizon).map { .nanoseconds($0 < 0 ? .max : $0) }
    }

    func noteHorizon(_ horizon: Duration, at now: Timestamp = .now) {
        self[.horizon] = max(1, horizon.saturatingNanoseconds)
        self[.lastEviction] = now.nanoseconds
    }

    /// For how long at most the next entry to be evicted has not been used; nil where that can't be told.
    ///
    /// The time since the last eviction, on top of its ``horizon``; where there was none, since the file was made.
    var expectedHorizon: Duration? {
        guard let begin = noted(.lastEviction) ?? file?.birthTime, words != nil, begin > 0 else { return nil }
        return (horizon ?? .zero) + max(.zero, Timestamp.now - Timestamp(nanoseconds: begin))
    }

    /// Entries that were replaced or removed since the last mark: as many objects may be named by none.
    ///
    /// The word as it is: a sweep takes off all that it holds.
    var replacedEntries: Int { Int(self[.replacedEntries] ?? 0) }

    func noteReplacement(_ count: Int = 1) {
        writableWords?.count(UInt64(bitPattern: Int64(count)), at: .replacedEntries)
    }

    /// Since when the counters count; nil where no control file is mapped, or it does not say.
    package var countedSince: Timestamp? { noted(.countedSince).map(Timestamp.init(nanoseconds:)) }

    /// Sets what all processes counted to 0; false where there is no control file that can be written.
    ///
    /// What another counts at this very moment may be lost.
    package func resetCounters(now: Timestamp) -> Bool {
        guard let words = writableWords else { return false }
        for index in ControlLayout.counters..<ControlLayout.generations { words.store(0, at: index) }
        words.store(UInt64(bitPattern: now.nanoseconds), at: .countedSince)
        return true
    }

    /// The word by which an exclusive waiter for a stripe keeps newcomers away.
    func wantedWord(_ tree: Tree, _ stripe: Int) -> MappedWord? {
        let offset = tree == .objects ? 0 : StoreLayout.stripeCount
        return writableWords.map { MappedWord(ControlLayout.wanted + offset + stripe, of: $0) }
    }
}
