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

    /// The number in a word; nil if it is 0, which means that nothing was noted yet.
    private func noted(_ word: ControlWord) -> Int64? { self[word].flatMap { $0 == 0 ? nil : $0 } }

    /// The usage of the cache; nil if no control file is mapped.
    package var usage: StoreUsage? {
        guard var usage = recordedUsage else { return nil }
        usage.bytes = usage.bytes.plausible
        usage.entries = Int(Int64(usage.entries).plausible)
        return usage
    }

    /// The unlimited values of the words, for a recount, which corrects any error in them.
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

    /// Adds the size of an object to its stripe's word, before the writer counts the object in the usage and names it.
    ///
    /// Once the object has its name, or was given up, the writer calls this again with the negative size.
    ///
    /// The caller holds the object's stripe shared from the first call to the second.
    func noteUnnamed(_ bytes: Int64, stripe: Int) {
        writableWords?.count(UInt64(bitPattern: bytes), at: ControlLayout.unnamed + stripe)
    }

    /// Sets the stripe's word to 0, which removes the bytes that killed writers have left in it.
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

    /// Whether no entry takes space besides its inode; also true if no control file is mapped, because there is no usage
    /// then.
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
    /// Access times need to be precise only to a fraction of it.
    package var horizon: Duration? {
        noted(.horizon).map { .nanoseconds($0 < 0 ? .max : $0) }
    }

    func noteHorizon(_ horizon: Duration, at now: Timestamp = .now) {
        self[.horizon] = max(1, horizon.saturatingNanoseconds)
        self[.lastEviction] = now.nanoseconds
    }

    /// The longest time for which the next entry to be evicted can have been unused; nil if it is not known.
    ///
    /// The sum of the ``horizon`` and the time since the last eviction; before the first eviction, the age of the control
    /// file.
    var expectedHorizon: Duration? {
        guard let begin = noted(.lastEviction) ?? file?.birthTime, words != nil, begin > 0 else { return nil }
        return (horizon ?? .zero) + max(.zero, Timestamp.now - Timestamp(nanoseconds: begin))
    }

    /// The number of entries that were replaced or removed and that no sweep has subtracted yet: that many objects may be
    /// orphans.
    ///
    /// The unlimited value of the word: a sweep subtracts all of it.
    var replacedEntries: Int { Int(self[.replacedEntries] ?? 0) }

    /// The bytes on disk of the objects of ``replacedEntries``, as far as they are known.
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

    /// Returns the number and size of the entries that are known to have expired since the last sweep.
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

    /// When the counters were last set to 0; nil if no control file is mapped, or if it does not contain the time.
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
