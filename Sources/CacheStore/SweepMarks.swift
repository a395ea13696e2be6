// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a sweep keeps of a content: something that entries name, or an object that was found; 16 bytes.
struct ContentMark: Sendable {
    /// What is known of its object.
    enum Presence: UInt32, Sendable {
        /// It was not found.
        case absent
        case present
        /// It is there, but could not be looked at.
        case unreadable
    }

    /// 0: of none.
    fileprivate var fingerprint: UInt64 = 0
    /// Bytes on disk of its object.
    var allocatedSize = AllocatedSize(bytes: 0)
    /// From the highest bit: 21 of references, 4 of the reason, 3 of the size class, 2 of the presence.
    private var bits: UInt32 = 0

    /// So many, or more: it is not known how many, and the object is never unreferenced.
    static let mostReferences = 1 << 21 - 1

    private static let referencesShift: UInt32 = 11
    private static let reasonShift: UInt32 = 5
    private static let classShift: UInt32 = 2

    private func field(_ shift: UInt32, _ width: UInt32) -> UInt32 { bits >> shift & (1 << width - 1) }

    private mutating func setField(_ shift: UInt32, _ width: UInt32, _ value: UInt32) {
        bits = bits & ~((1 << width - 1) << shift) | value << shift
    }

    /// Entries that name it, as far as they are not deleted.
    private(set) var references: Int {
        get { Int(field(Self.referencesShift, 21)) }
        set { setField(Self.referencesShift, 21, UInt32(newValue)) }
    }

    var presence: Presence {
        get { Presence(rawValue: field(0, 2)) ?? .unreadable }
        set { setField(0, 2, newValue.rawValue) }
    }

    /// What is expected of its size: its class in ``SweepAllocation``; that of no length where entries differ, or none
    /// names it.
    private(set) var sizeClass: UInt8 {
        get { UInt8(field(Self.classShift, 3)) }
        set { setField(Self.classShift, 3, UInt32(newValue)) }
    }

    /// Why the last entry that named it was deleted; nil where none was.
    private(set) var freed: SweepReason? {
        get { SweepReason(place: Int(field(Self.reasonShift, 4)) - 1) }
        set { setField(Self.reasonShift, 4, UInt32((newValue?.place ?? -1) + 1)) }
    }

    /// Takes down that an entry names it, and the class of the length that this one states.
    mutating func noteReference(sizeClass: UInt8) {
        self.sizeClass =
            references == 0 || self.sizeClass == sizeClass ? sizeClass : SweepAllocation.unknownClass
        references = min(references + 1, Self.mostReferences)
    }

    /// Takes down that an entry that named it is gone; whether it was the last.
    mutating func noteRemoval(_ reason: SweepReason) -> Bool {
        guard references > 0, references < Self.mostReferences else { return false }
        references -= 1
        if references == 0 { freed = reason }
        return references == 0
    }
}

/// The mark: all contents that a sweep has come across, each once.
///
/// A hash table with open addressing that knows a content by 64 bits of a hash of its digest: 16 bytes a slot, of which
/// 40 to 80 in a hundred are in use. So an object with an entry of its own takes 20 to 40 bytes here.
///
/// Two contents with the same fingerprint share a mark. Its references are those of both, so neither is unreferenced
/// while either is named: what is named is never deleted, and what is spared that way the next sweep finds, which
/// hashes in another way. Nor is an entry taken for dangling whose object is there. Among a million contents there are
/// two such in one sweep of 37 million, among a billion in one of 37.
///
/// A billion contents would take 32 GiB. Should that be asked for: the fingerprint's leading bits tell a range of
/// contents, and a sweep would pass over the entries once for each range, noting those only.
struct SweepMarks {
    private var slots = [ContentMark](repeating: ContentMark(), count: 256)
    private(set) var count = 0
    /// Random, so that nobody can choose digests that collide.
    private let seed: SIMD4<UInt64>

    init(seed: SIMD4<UInt64> = .random(in: 0 ... .max)) {
        self.seed = seed
    }

    subscript(slot: Int) -> ContentMark {
        get { slots[slot] }
        _modify { yield &slots[slot] }
    }

    /// What is known of `digest`.
    func mark(of digest: Digest) -> ContentMark? {
        let fingerprint = fingerprint(of: digest)
        var slot = Int(truncatingIfNeeded: fingerprint) & (slots.count - 1)
        while slots[slot].fingerprint != 0 {
            if slots[slot].fingerprint == fingerprint { return slots[slot] }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    /// The slot of `digest`, a new one if it was not known; good until the next is asked for.
    mutating func slot(of digest: Digest) -> Int {
        if count * 5 >= slots.count * 4 { grow() }
        let fingerprint = fingerprint(of: digest)
        let slot = place(of: fingerprint)
        if slots[slot].fingerprint == 0 {
            slots[slot].fingerprint = fingerprint
            count += 1
        }
        return slot
    }

    /// Its slot, or the vacant one that is to be its own.
    private func place(of fingerprint: UInt64) -> Int {
        var slot = Int(truncatingIfNeeded: fingerprint) & (slots.count - 1)
        while slots[slot].fingerprint != fingerprint, slots[slot].fingerprint != 0 {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    private mutating func grow() {
        let old = slots
        slots = [ContentMark](repeating: ContentMark(), count: old.count * 2)
        for mark in old where mark.fingerprint != 0 { slots[place(of: mark.fingerprint)] = mark }
    }

    /// Products of seeded words, both halves of each: what differs anywhere in the digest differs here.
    ///
    /// Never 0.
    func fingerprint(of digest: Digest) -> UInt64 {
        let first = (digest.rawWords[0] ^ seed[0]).multipliedFullWidth(by: digest.rawWords[1] ^ seed[1])
        let second = (digest.rawWords[2] ^ seed[2]).multipliedFullWidth(by: digest.rawWords[3] ^ seed[3])
        return max(1, first.high ^ first.low ^ second.high ^ second.low)
    }

    /// Whether any entry names a content of which no object was found.
    var hasMissing: Bool {
        slots.contains { $0.references > 0 && $0.presence == .absent }
    }
}
