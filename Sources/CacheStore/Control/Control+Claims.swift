// SPDX-License-Identifier: Apache-2.0

import Platform

/// A claim of a writer, visible to all processes: space on disk that the writer is about to use.
struct SpaceClaim {
    let bytes: Int64
    let entries: Int
    fileprivate let turn: UInt16
    fileprivate let words: MappedWords

    fileprivate var bytesWord: ControlWord { turn & 1 == 0 ? .evenClaims : .oddClaims }
    fileprivate var entriesWord: ControlWord { turn & 1 == 0 ? .evenEntryClaims : .oddEntryClaims }
}

/// Space that a put has reserved but not used yet.
///
/// The space is given back when this value is destroyed.
struct Reservation: ~Copyable {
    /// Nil if no limit makes a claim necessary.
    let claim: SpaceClaim?

    /// A reservation of nothing.
    init() { claim = nil }

    init(_ claim: SpaceClaim?) { self.claim = claim }

    deinit { claim?.giveBack() }

    /// Whether a new entry may be created: one is reserved, or no limit applies.
    var includesEntry: Bool { claim.map { $0.entries > 0 } ?? true }
}

/// The sum of the claims of all writers.
struct ClaimedSpace: Equatable {
    var bytes: Int64 = 0
    var entries = 0
}

/// The sum of the claims of one turn: the number of the turn, modulo 65,536, in the upper 16 bits, and bytes or entries in
/// the lower 48.
private struct ClaimWord {
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The maximum is 256 TiB; larger amounts are stored as the maximum.
    init(turn: UInt16, amount: Int64) {
        rawValue = UInt64(turn) << 48 | UInt64(min(max(0, amount), Self.most))
    }

    private static let most: Int64 = 1 << 48 - 1

    var turn: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 48) }
    var amount: Int64 { Int64(rawValue & UInt64(Self.most)) }

    /// Returns whether these claims count in turn `present`: only the claims of that turn and of the previous one do.
    func counts(in present: UInt16) -> Bool { present &- turn <= 1 }
}

extension SpaceClaim {
    /// Whether the claim still counts.
    var isStanding: Bool {
        let word = ClaimWord(rawValue: words.load(bytesWord))
        return word.turn == turn && word.counts(in: Control.turn(words))
    }

    /// Ends the claim.
    ///
    /// Has no effect if the claim was forgotten.
    func giveBack() {
        Control.subtract(bytes, from: bytesWord, turn, words)
        if entries > 0 { Control.subtract(Int64(entries), from: entriesWord, turn, words) }
    }
}

extension Control {
    /// Claims space for a writer; returns nil if there is no writable control file.
    ///
    /// Two words hold the sums of the claims of alternating turns, each together with the number of its turn. A killed or
    /// stopped process never gives its claim back: the claim is forgotten at the end of the turn that follows its own. A
    /// slow writer claims again before it publishes (``SpaceClaim/isStanding``). Giving back a forgotten claim has no
    /// effect.
    func claim(_ bytes: Int64, entries: Int = 0) -> SpaceClaim? {
        guard let words = writableWords else { return nil }
        let bytes = max(0, bytes)
        while true {
            let turn = presentTurn(words)
            let claim = SpaceClaim(bytes: bytes, entries: entries, turn: turn, words: words)
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
            // Check the turn after loading the word: the word may belong to a later turn.
            guard Self.turn(words) == turn else { return false }
            let present = ClaimWord(rawValue: word)
            let sum = (present.turn == turn ? present.amount : 0).addingReportingOverflow(amount)
            let next = ClaimWord(turn: turn, amount: sum.overflow ? .max : sum.partialValue)
            if words.replace(word, by: next.rawValue, at: place) { return true }
        }
    }

    /// Subtracts from the claims of a turn, down to 0.
    fileprivate static func subtract(
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

    /// Returns the number of the present turn; starts the next turn first if the time of the present one is over.
    ///
    /// - Parameter clock: Milliseconds of a clock that never runs backward while the machine is up.
    func presentTurn(_ words: MappedWords, clock: () -> UInt64 = { Timestamp.monotonicMilliseconds })
        -> UInt16
    {
        // Load the word before the time. If another thread begins a turn between the two, the age is too large, but the
        // word has changed and is not replaced. In the opposite order, the turn that the other thread has begun would seem
        // to be from an earlier boot.
        let word = words.load(.claimTurn)
        let now = clock()
        // The upper bits are the time when the turn began, perhaps in an earlier boot.
        let began = word >> 16
        let age = now < began ? .max : now - began
        if age >= Self.claimTurn {
            // If no process began a turn for the length of two turns, skip turns so that both words are forgotten. The
            // step is odd because the words alternate.
            let step: UInt16 = age / 2 >= Self.claimTurn ? 3 : 1
            let next = UInt16(truncatingIfNeeded: word) &+ step
            _ = words.replace(word, by: now << 16 | UInt64(next), at: .claimTurn)
        }
        return Self.turn(words)
    }

    fileprivate static func turn(_ words: MappedWords) -> UInt16 {
        UInt16(truncatingIfNeeded: words.load(.claimTurn))
    }

    /// The length of a turn in milliseconds: a quarter of a second, in which most disks write 100 MB.
    ///
    /// A longer write claims again before it publishes. Two turns are shorter than the time that a put waits for a stopped
    /// process (``JanitorWait``), so no put fails because of the claims of stopped processes.
    static let claimTurn: UInt64 = 250

    /// The sum of the claims of all writers.
    var claimed: ClaimedSpace {
        guard let words else { return ClaimedSpace() }
        // This starts the next turn if it is due: otherwise, without new claims, the claims of killed writers would never
        // be forgotten.
        let turn = writableWords.map { presentTurn($0) } ?? Self.turn(words)
        func amount(_ place: ControlWord) -> Int64 {
            let word = ClaimWord(rawValue: words.load(place))
            return word.counts(in: turn) ? word.amount : 0
        }
        return ClaimedSpace(
            bytes: amount(.evenClaims) + amount(.oddClaims),
            entries: Int(amount(.evenEntryClaims) + amount(.oddEntryClaims))
        )
    }

    /// The claimed bytes.
    var claimedBytes: Int64 { claimed.bytes }
}
