// SPDX-License-Identifier: Apache-2.0

import Platform

/// A histogram of expiration times, in the control file.
///
/// When the cache is at its limit, the histogram shows whether expired entries may free enough space: then a sweep for
/// expired entries costs less than evicting entries in use. The histogram is an estimate: an entry stays counted if a plain
/// put replaces it or if it is evicted, and a sweep subtracts everything that has expired.
///
/// The histogram has 14 levels of 16 words, like a hierarchical timing wheel (Varghese and Lauck, SOSP 1987). A word of
/// level *n* counts the entries that expire in the same period of 32 · 4ⁿ ms. An entry is counted at the lowest level whose
/// words cover its time to live. So its expiration shows late, by 32 ms or a third of its time to live at most. Times to
/// live of more than a year are not counted. The words of a level are reused in turn: the counts of the older period are
/// first added to the total of the expired entries.
struct ExpirationHistogram {
    /// Entries and their bytes on disk.
    struct Amount: Equatable {
        var entries = 0
        var bytes: Int64 = 0
    }

    private static let levelCount = 14
    private static let slotCount = 16
    /// The index of the two words after the slots: the totals of expired entries and of their blocks from slots that were
    /// reused.
    private static let expired = ControlLayout.expirations + levelCount * slotCount

    private let words: MappedWords

    init(in words: MappedWords) {
        self.words = words
    }

    /// The contents of one word: the number of its period divided by 16, modulo 4096; entries; and blocks of 4 KiB.
    ///
    /// The counts saturate.
    private struct Slot {
        var round: UInt64
        var entries: Int64
        var blocks: Int64

        init(round: UInt64, entries: Int64 = 0, blocks: Int64 = 0) {
            self.round = round & 0xfff
            self.entries = min(max(0, entries), 0xf_ffff)
            self.blocks = min(max(0, blocks), 0xffff_ffff)
        }

        init(word: UInt64) {
            self.init(
                round: word >> 52,
                entries: Int64(word >> 32 & 0xf_ffff),
                blocks: Int64(word & 0xffff_ffff)
            )
        }

        var word: UInt64 { round << 52 | UInt64(entries) << 32 | UInt64(blocks) }
    }

    private static let blockSize: Int64 = 4096

    /// Returns the length of a word's period in milliseconds.
    private static func width(_ level: Int) -> UInt64 { 32 << UInt64(2 * level) }

    private static func period(_ moment: Timestamp, _ level: Int) -> UInt64 {
        UInt64(max(0, moment.milliseconds)) / width(level)
    }

    /// Counts one entry; a `sign` of −1 subtracts it again, if it was counted with the same times.
    ///
    /// No system call. A few loads and one compare-and-swap.
    ///
    /// - Parameters:
    ///   - moment: When the entry expires, including its stale period.
    ///   - lifetime: The time from its creation until then.
    func count(_ sign: Int64, bytes: Int64, expiring moment: Timestamp, lifetime: Duration) {
        let milliseconds = lifetime.saturatingNanoseconds / 1_000_000
        let reach = Int64(Self.slotCount - 1)
        guard
            let level = (0..<Self.levelCount).first(where: { milliseconds <= reach * Int64(Self.width($0)) })
        else { return }
        let period = Self.period(moment, level)
        let place =
            ControlLayout.expirations + level * Self.slotCount + Int(period % UInt64(Self.slotCount))
        let round = period / UInt64(Self.slotCount) & 0xfff
        let blocks = sign * ((bytes.plausible + Self.blockSize - 1) / Self.blockSize)
        while true {
            let word = words.load(place)
            let present = Slot(word: word)
            let isSame = present.round == round
            if !isSame, sign < 0 { return }
            let next = Slot(
                round: round,
                entries: (isSame ? present.entries : 0) + sign,
                blocks: (isSame ? present.blocks : 0) + blocks
            )
            guard words.replace(word, by: next.word, at: place) else { continue }
            if !isSame { addExpired(present.entries, present.blocks) }
            return
        }
    }

    private func addExpired(_ entries: Int64, _ blocks: Int64) {
        if entries != 0 { words.count(UInt64(bitPattern: entries), at: Self.expired) }
        if blocks != 0 { words.count(UInt64(bitPattern: blocks), at: Self.expired + 1) }
    }

    /// Returns the slots whose periods have ended, with their places.
    private func past(by now: Timestamp) -> [(place: Int, word: UInt64)] {
        var past: [(place: Int, word: UInt64)] = []
        for level in 0..<Self.levelCount {
            let present = Self.period(now, level)
            for index in 0..<Self.slotCount {
                let place = ControlLayout.expirations + level * Self.slotCount + index
                let word = words.load(place)
                let slot = Slot(word: word)
                guard slot.entries > 0 else { continue }
                // The distance from the present period, modulo 65,536. Entries are counted at most 16 periods ahead, so a
                // larger distance means the past.
                let ahead = ((slot.round << 4 | UInt64(index)) &- present) & 0xffff
                if ahead > UInt64(Self.slotCount) { past.append((place, word)) }
            }
        }
        return past
    }

    /// Returns the number and size of the counted entries that have expired since the last sweep.
    func expired(by now: Timestamp) -> Amount {
        var (entries, blocks) = totals
        for (_, word) in past(by: now) {
            let slot = Slot(word: word)
            entries += slot.entries
            blocks += slot.blocks
        }
        return Amount(entries: Int(max(0, entries)), bytes: max(0, blocks).plausible * Self.blockSize)
    }

    /// The totals of expired entries and of their blocks from slots that were reused.
    private var totals: (entries: Int64, blocks: Int64) {
        func total(_ place: Int) -> Int64 { min(Int64(bitPattern: words.load(place)).plausible, 1 << 40) }
        return (total(Self.expired), total(Self.expired + 1))
    }

    /// The counts of the entries that a sweep will remove, to be subtracted afterwards.
    struct Mark {
        fileprivate let past: [(place: Int, word: UInt64)]
        fileprivate let totals: (entries: UInt64, blocks: UInt64)
    }

    /// Returns the counts of the entries that have expired by now, for a sweep that begins.
    func mark(at now: Timestamp) -> Mark {
        Mark(
            past: past(by: now),
            totals: (words.load(Self.expired), words.load(Self.expired + 1))
        )
    }

    /// Subtracts the counts of the entries that a sweep has removed.
    func forget(_ mark: Mark) {
        for (place, word) in mark.past { forget(Slot(word: word), at: place) }
        words.count(0 &- mark.totals.entries, at: Self.expired)
        words.count(0 &- mark.totals.blocks, at: Self.expired + 1)
    }

    private func forget(_ past: Slot, at place: Int) {
        while true {
            let word = words.load(place)
            let present = Slot(word: word)
            // If the slot was reused for another round, the totals already include its counts.
            guard present.round == past.round else { return addExpired(-past.entries, -past.blocks) }
            let rest = Slot(
                round: past.round,
                entries: present.entries - past.entries,
                blocks: present.blocks - past.blocks
            )
            if words.replace(word, by: rest.word, at: place) { return }
        }
    }
}
