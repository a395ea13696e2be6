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

    /// The same as far as there can be so much: whoever can write the control file can write anything there.
    var plausibleBytes: Int64 { min(max(0, bytes), Self.most) }
    var plausibleEntries: Int { min(max(0, entries), Int(Self.most)) }

    /// 64 PiB: what adds up to no overflow.
    fileprivate static let most: Int64 = 1 << 56
}

/// What a writer is about to take on disk, as all processes see it.
struct RoomClaim {
    let bytes: Int64
    fileprivate let index: Int
    fileprivate let words: MappedWords
}

extension Control {
    /// nil where no control file is mapped.
    var usage: StoreUsage? {
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
        return min(Int64(bitPattern: word), StoreUsage.most)
    }

    func noteOverhead(bytes: Int64) {
        writableWords?.store(UInt64(bitPattern: bytes), at: ControlLayout.overheadBytes)
    }

    // MARK: Claims

    /// Adds to what writers are about to take; nil where no control file is mapped.
    ///
    /// Claims are added up in two words that take turns, so that those of killed processes, which nobody gives back,
    /// are forgotten: whenever a turn ends, what is left of the one before it counts no more.
    func claim(_ bytes: Int64) -> RoomClaim? {
        guard let words = writableWords else { return nil }
        let now = Timestamp.monotonicMilliseconds
        let turn = words.load(ControlLayout.claimTurn)
        // In the upper bits when it began; a boot may have passed since.
        let age = now < turn >> 1 ? .max : now - (turn >> 1)
        if age >= Self.claimTurn { beginTurn(at: now, after: turn, isOld: age / 2 >= Self.claimTurn, words) }
        let index = ControlLayout.claims + Int(words.load(ControlLayout.claimTurn) & 1)
        words.count(UInt64(bitPattern: bytes), at: index)
        return RoomClaim(bytes: bytes, index: index, words: words)
    }

    /// What is left of the turn before the last is forgotten; and of the last one too if that `isOld`: then nobody has
    /// claimed anything for a turn.
    ///
    /// Only what was there before is taken off: others may be claiming already.
    private func beginTurn(at now: UInt64, after turn: UInt64, isOld: Bool, _ words: MappedWords) {
        let next = now << 1 | (turn & 1 ^ 1)
        let places = [ControlLayout.claims + Int(next & 1), ControlLayout.claims + Int(turn & 1)]
        let left = places.map { words.load($0) }
        guard words.replace(turn, by: next, at: ControlLayout.claimTurn) else { return }
        words.count(0 &- left[0], at: places[0])
        if isOld { words.count(0 &- left[1], at: places[1]) }
    }

    /// Milliseconds: 20 seconds, in which a gigabyte of bytes in memory is written on most disks.
    ///
    /// What takes longer counts no more until it is stored.
    ///
    /// Two turns are less than a put waits (``StoreOptions/roomPatience``): those of killed processes fail none.
    static let claimTurn: UInt64 = 20_000

    func giveBack(_ claim: RoomClaim) {
        claim.words.count(UInt64(bitPattern: -claim.bytes), at: claim.index)
    }

    /// What writers are about to take.
    var claimedBytes: Int64 {
        guard let words else { return 0 }
        // Forgotten and then given back, one is negative until its turn comes.
        return (0..<2).reduce(0) {
            $0 + min(max(0, Int64(bitPattern: words.load(ControlLayout.claims + $1))), StoreUsage.most / 2)
        }
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
