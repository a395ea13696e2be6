// SPDX-License-Identifier: Apache-2.0

import Platform

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
    fileprivate let turn: UInt16
    fileprivate let words: MappedWords

    fileprivate var index: Int { ControlLayout.claims + Int(turn & 1) }
}

/// What was claimed in one turn: the turn's number, modulo 65,536, in the upper 16 bits, bytes below.
private struct ClaimWord {
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    /// 256 TiB at most: more is counted as that.
    init(turn: UInt16, bytes: Int64) {
        rawValue = UInt64(turn) << 48 | UInt64(min(max(0, bytes), Self.most))
    }

    private static let most: Int64 = 1 << 48 - 1

    var turn: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 48) }
    var bytes: Int64 { Int64(rawValue & UInt64(Self.most)) }

    /// Whether it counts in that turn: claims of a turn and of the one before it do.
    func counts(in present: UInt16) -> Bool { present &- turn <= 1 }
}

extension Control {
    /// nil where no control file is mapped.
    var usage: StoreUsage? {
        guard var usage = recordedUsage else { return nil }
        usage.bytes = usage.bytes.plausible
        usage.entries = Int(Int64(usage.entries).plausible)
        return usage
    }

    /// The words as they are, for a recount, which has to take off all that is wrong.
    var recordedUsage: StoreUsage? {
        guard let words else { return nil }
        return StoreUsage(
            bytes: Int64(bitPattern: words.load(ControlLayout.usedBytes)),
            entries: Int(Int64(bitPattern: words.load(ControlLayout.usedEntries))),
            isCounted: words.load(ControlLayout.isUsageCounted) != 0
        )
    }

    /// Adds what was allocated, or was freed where it is negative.
    func addUsage(bytes: Int64, entries: Int) {
        guard let words = writableWords else { return }
        if bytes != 0 { words.count(UInt64(bitPattern: bytes), at: ControlLayout.usedBytes) }
        if entries != 0 { words.count(UInt64(bitPattern: Int64(entries)), at: ControlLayout.usedEntries) }
    }

    func noteUsageIsCounted() {
        writableWords?.store(1, at: ControlLayout.isUsageCounted)
    }

    /// Bytes on disk beside entries and objects: the directories, the control file and the others in the root, as
    /// the last sweep found them; nil where none has looked yet.
    var overhead: Int64? {
        guard let word = words?.load(ControlLayout.overheadBytes), word != 0 else { return nil }
        return max(0, Int64(bitPattern: word).plausible)
    }

    func noteOverhead(bytes: Int64) {
        writableWords?.store(UInt64(bitPattern: bytes), at: ControlLayout.overheadBytes)
    }

    // MARK: Claims

    /// Adds to what writers are about to take; nil where no control file is mapped.
    ///
    /// Claims are added up in two words that take turns, each with the number of its turn. So those of killed or stopped
    /// processes, which nobody gives back, are forgotten once the turn after theirs is over. Whoever takes longer claims
    /// again before it publishes (``isStanding(_:)``), and what is given back late is given back to nobody.
    func claim(_ bytes: Int64) -> RoomClaim? {
        guard let words = writableWords else { return nil }
        let bytes = max(0, bytes)
        while true {
            let turn = presentTurn(words)
            let claim = RoomClaim(bytes: bytes, turn: turn, words: words)
            let word = words.load(claim.index)
            // Before the word was loaded: else it may be one of a later turn.
            guard Self.turn(words) == turn else { continue }
            let present = ClaimWord(rawValue: word)
            let sum = (present.turn == turn ? present.bytes : 0).addingReportingOverflow(bytes)
            let next = ClaimWord(turn: turn, bytes: sum.overflow ? .max : sum.partialValue)
            if words.replace(word, by: next.rawValue, at: claim.index) { return claim }
        }
    }

    /// The number of the present turn; begins the next where it is over.
    private func presentTurn(_ words: MappedWords) -> UInt16 {
        let now = Timestamp.monotonicMilliseconds
        let word = words.load(ControlLayout.claimTurn)
        // In the upper bits when it began; a boot may have passed since.
        let began = word >> 16
        let age = now < began ? .max : now - began
        if age >= Self.claimTurn {
            // Where nobody has claimed anything for a turn both are forgotten. Odd, as the places take turns.
            let step: UInt16 = age / 2 >= Self.claimTurn ? 3 : 1
            let next = UInt16(truncatingIfNeeded: word) &+ step
            _ = words.replace(word, by: now << 16 | UInt64(next), at: ControlLayout.claimTurn)
        }
        return Self.turn(words)
    }

    private static func turn(_ words: MappedWords) -> UInt16 {
        UInt16(truncatingIfNeeded: words.load(ControlLayout.claimTurn))
    }

    /// Milliseconds: a quarter of a second, in which 100 MB are written on most disks.
    ///
    /// What takes longer is claimed again when it is written. Two turns are less than anybody waits for one who does not
    /// move (``JanitorWait``): claims of stopped processes fail no put.
    static let claimTurn: UInt64 = 250

    /// Whether the claim counts still.
    func isStanding(_ claim: RoomClaim) -> Bool {
        let word = ClaimWord(rawValue: claim.words.load(claim.index))
        return word.turn == claim.turn && word.counts(in: Self.turn(claim.words))
    }

    /// Takes off what was claimed, if it counts still; never more than there is.
    func giveBack(_ claim: RoomClaim) {
        while true {
            let word = claim.words.load(claim.index)
            let present = ClaimWord(rawValue: word)
            guard present.turn == claim.turn else { return }
            let rest = ClaimWord(turn: claim.turn, bytes: present.bytes - claim.bytes)
            if claim.words.replace(word, by: rest.rawValue, at: claim.index) { return }
        }
    }

    /// What writers are about to take.
    var claimedBytes: Int64 {
        guard let words else { return 0 }
        // Where nobody claims anything any more turns have to go on all the same, or claims of the dead would stay.
        let turn = writableWords.map { presentTurn($0) } ?? Self.turn(words)
        return (0..<2).reduce(0) { sum, place in
            let word = ClaimWord(rawValue: words.load(ControlLayout.claims + place))
            return sum + (word.counts(in: turn) ? word.bytes : 0)
        }
    }

    // MARK: Who makes room

    /// Tells that who holds the `janitor` lock, this process, gets on.
    func noteSweepStep() {
        writableWords?.count(1, at: ControlLayout.sweepSteps)
    }

    /// Says who holds the `janitor` lock.
    func noteSweepHolder() {
        guard let words = writableWords else { return }
        let place = CurrentProcess.namespace
        words.store(
            UInt64(place) << 32 | UInt64(UInt32(bitPattern: CurrentProcess.identifier)),
            at: ControlLayout.sweepHolder
        )
        noteSweepStep()
    }

    /// Another number each time that who holds the `janitor` lock has got on; nil where no control file is mapped.
    var sweepSteps: UInt64? { words?.load(ControlLayout.sweepSteps) }

    /// Who has taken the `janitor` lock last; nil where that is not known, or no process of our namespace.
    var sweepHolder: Int32? {
        guard let word = words?.load(ControlLayout.sweepHolder) else { return nil }
        let identifier = Int32(truncatingIfNeeded: word)
        guard CurrentProcess.namespace != 0, UInt32(word >> 32) == CurrentProcess.namespace else {
            return nil
        }
        return identifier > 0 ? identifier : nil
    }

    // MARK: Eviction

    /// For how long what was evicted last had not been used; nil where nothing was evicted yet.
    ///
    /// Accesses need be noted no more exactly than by a part of that.
    var horizon: Duration? {
        guard let word = words?.load(ControlLayout.horizon), word != 0 else { return nil }
        return .nanoseconds(Int64(clamping: word))
    }

    func noteHorizon(_ horizon: Duration, at now: Timestamp = .now) {
        guard let words = writableWords else { return }
        words.store(UInt64(max(1, horizon.saturatingNanoseconds)), at: ControlLayout.horizon)
        words.store(UInt64(bitPattern: now.nanoseconds), at: ControlLayout.lastEviction)
    }

    /// For how long at most the next entry to be evicted has not been used; nil where that can't be told.
    ///
    /// The time since the last eviction, on top of its ``horizon``; where there was none, since the file was made.
    var expectedHorizon: Duration? {
        guard let words else { return nil }
        var begin = Int64(bitPattern: words.load(ControlLayout.lastEviction))
        if begin == 0 { begin = file?.birthTime ?? 0 }
        guard begin > 0 else { return nil }
        return (horizon ?? .zero) + max(.zero, Timestamp.now - Timestamp(nanoseconds: begin))
    }

    /// Entries that were replaced or removed since the last mark: as many objects may be named by none.
    ///
    /// The word as it is: a sweep takes off all that it holds.
    var replacedEntries: Int {
        words.map { Int(Int64(bitPattern: $0.load(ControlLayout.replacedEntries))) } ?? 0
    }

    func noteReplacement(_ count: Int = 1) {
        writableWords?.count(UInt64(bitPattern: Int64(count)), at: ControlLayout.replacedEntries)
    }

    /// Since when the counters count; nil where no control file is mapped, or it does not say.
    var countedSince: Timestamp? {
        guard let word = words?.load(ControlLayout.countedSince), word != 0 else { return nil }
        return Timestamp(nanoseconds: Int64(bitPattern: word))
    }

    /// Where nothing else may be counted meanwhile, nothing is lost; false where there is none to write.
    func resetCounters(now: Timestamp) -> Bool {
        guard let words = writableWords else { return false }
        for index in ControlLayout.counters..<ControlLayout.generations { words.store(0, at: index) }
        words.store(UInt64(bitPattern: now.nanoseconds), at: ControlLayout.countedSince)
        return true
    }

    /// The word by which an exclusive waiter for a stripe keeps newcomers away.
    func wantedWord(_ kind: Stripes.Kind, _ stripe: Int) -> MappedWord? {
        let offset = kind == .object ? 0 : StoreLayout.stripeCount
        return writableWords.map { MappedWord(ControlLayout.wanted + offset + stripe, of: $0) }
    }
}
