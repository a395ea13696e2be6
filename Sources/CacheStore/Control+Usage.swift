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
}

/// What sweeps tell those that come after them, in any process.
package struct SweepMarks: Sendable {
    private let words: MappedWords

    init(in words: MappedWords) {
        self.words = words
    }

    /// When the last full sweep began, and when it ended, by the wall clock; nil for never.
    package var began: Timestamp? {
        get { self[time: 0] }
        nonmutating set { self[time: 0] = newValue }
    }

    package var ended: Timestamp? {
        get { self[time: 1] }
        nonmutating set { self[time: 1] = newValue }
    }

    /// The process that did it.
    package var process: Int32 {
        get { Int32(truncatingIfNeeded: words.load(ControlLayout.sweepMarks + 2)) }
        nonmutating set {
            words.store(UInt64(UInt32(bitPattern: newValue)), at: ControlLayout.sweepMarks + 2)
        }
    }

    /// How long it worked, pauses left out.
    package var cost: Duration {
        get { .nanoseconds(Int64(bitPattern: words.load(ControlLayout.sweepMarks + 3))) }
        nonmutating set {
            words.store(UInt64(bitPattern: newValue.saturatingNanoseconds), at: ControlLayout.sweepMarks + 3)
        }
    }

    private subscript(time index: Int) -> Timestamp? {
        get {
            let word = words.load(ControlLayout.sweepMarks + index)
            return word == 0 ? nil : Timestamp(nanoseconds: Int64(bitPattern: word))
        }
        nonmutating set {
            let word = UInt64(bitPattern: newValue?.nanoseconds ?? 0)
            words.store(word, at: ControlLayout.sweepMarks + index)
        }
    }
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
