// SPDX-License-Identifier: Apache-2.0

import Platform

/// A hash table with open addressing that knows a digest by 64 bits of a hash of it: beside each value 8 bytes a slot,
/// of which 40 to 80 in a hundred are in use.
///
/// Two digests with the same fingerprint share a value. Among a million there are two such in one table of 37 million,
/// among a billion in one of 37; the next table hashes in another way.
struct FingerprintTable<Value: Sendable>: Sendable {
    private struct Slot {
        /// 0: it is vacant.
        var fingerprint: UInt64 = 0
        var value: Value
    }

    private var slots: [Slot]
    private(set) var count = 0
    private let vacant: Value
    /// Random, so that nobody can choose digests that collide.
    private let seed: SIMD4<UInt64>

    /// Bytes.
    static var slotSize: Int { MemoryLayout<Slot>.stride }

    /// - Parameter vacant: the value of a digest that was not known.
    init(vacant: Value, seed: SIMD4<UInt64> = .random(in: 0 ... .max)) {
        self.vacant = vacant
        self.seed = seed
        slots = [Slot](repeating: Slot(value: vacant), count: 64)
    }

    /// The value in a slot.
    subscript(slot: Int) -> Value {
        get { slots[slot].value }
        _modify { yield &slots[slot].value }
    }

    /// What is known of `digest`.
    func value(of digest: Digest) -> Value? {
        let slot = slots[place(of: fingerprint(of: digest))]
        return slot.fingerprint == 0 ? nil : slot.value
    }

    /// The values of all digests that are known.
    var values: some Sequence<Value> { slots.lazy.filter { $0.fingerprint != 0 }.map(\.value) }

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
        slots = [Slot](repeating: Slot(value: vacant), count: old.count * 2)
        for slot in old where slot.fingerprint != 0 { slots[place(of: slot.fingerprint)] = slot }
    }

    /// Products of seeded words, both halves of each: what differs anywhere in the digest differs here.
    ///
    /// Never 0.
    func fingerprint(of digest: Digest) -> UInt64 {
        let first = (digest.rawWords[0] ^ seed[0]).multipliedFullWidth(by: digest.rawWords[1] ^ seed[1])
        let second = (digest.rawWords[2] ^ seed[2]).multipliedFullWidth(by: digest.rawWords[3] ^ seed[3])
        return max(1, first.high ^ first.low ^ second.high ^ second.low)
    }
}
