// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Synchronization

/// A value of any type that a process holds in memory, in the form in which the memory tier finds, checks and evicts it.
///
/// A hit reads the first fields and the value, which follows in ``MemoryValue``: three cache lines in all.
class MemoryEntry: @unchecked Sendable {
    /// The time until which a hit must check only the generation; from then on it must check the whole validity.
    ///
    /// Guarded by the shard's lock.
    private(set) final var due = Timestamp.distantPast
    /// The earliest plausible current time: an earlier one means that the clock was set back after the value was stored.
    ///
    /// Guarded by the shard's lock.
    private(set) final var start = Timestamp.distantPast
    /// The codec's type, which distinguishes the forms in which a key's value is held.
    final let form: ObjectIdentifier
    /// The key in the form in which the tier looks it up.
    ///
    /// Set before the item enters the tier.
    final var name = KeyBytes()
    /// The item's place in the eviction queues.
    ///
    /// Guarded by the ledger's lock.
    final var handle: EvictionQueues<MemoryEntry>.Handle = 0
    /// The number of hits since the item was added, up to ``EvictionQueues/highestFrequency``.
    final let frequency = Atomic<UInt8>(0)
    /// The key space of the key.
    final let space: KeySpace
    /// The conditions under which the value may be returned.
    ///
    /// Guarded by the shard's lock.
    final var validity = MemoryValidity() {
        didSet {
            due = isWhole ? validity.due : .distantPast
            start = created == .distantFuture ? .distantPast : created - Record.clockTolerance
        }
    }
    final let key: String
    /// The value's cost in memory.
    final let cost: Int

    /// The form of values that are bytes.
    @inline(__always)
    static var bytes: ObjectIdentifier { ObjectIdentifier(BytesCodec.self) }

    init(key: String, in space: KeySpace, form: ObjectIdentifier, cost: Int) {
        self.key = key
        self.space = space
        self.form = form
        self.cost = max(0, cost)
    }

    /// Whether no part of the value has been discarded (``DiscardableValue``); if one has, each hit checks the whole
    /// validity.
    var isWhole: Bool { true }

    /// Returns the item with the value's discardable part discarded; nil if the value has no such part.
    ///
    /// This runs the value's own code, so the caller must hold no lock.
    func discarded() -> MemoryEntry? { nil }

    /// The value without its static type; nil if there is none.
    var anyValue: (any Sendable)? { nil }

    /// When the value was stored.
    var created: Timestamp { .distantFuture }

    /// Returns the value's record.
    func makeRecord() -> Record { preconditionFailure("a value has a record") }

    /// The name of the key's entry.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, which are hashed.
    final var entryName: Digest { Digest(ofKey: key, in: space) }

    /// Returns the value's entry for a caller that found the value at `moment`.
    final func entry(at moment: Timestamp) -> CacheEntry {
        CacheEntry(makeRecord(), keyDigest: entryName, key: key, accessed: nil, now: moment)
    }

    /// Returns whether this is the value of the key in the given form; nil matches any form.
    @inline(__always)
    final func isNamed(_ name: KeyBytes, _ key: String, _ form: ObjectIdentifier?) -> Bool {
        self.name.head == name.head && self.name.length == name.length && (form == nil || self.form == form)
            && (name.length <= KeyBytes.Head.capacity || self.key.hasSameBytes(as: key))
    }
}

/// A value that a process holds in memory, as it was stored or as a typed view decoded it, with its record.
class MemoryValue<Value: Sendable>: MemoryEntry, @unchecked Sendable {
    final let value: Value
    final let record: Record
    /// The cost of the value with the part that it has discarded (``DiscardableValue``); nil if the value is complete.
    final let wholeCost: Int?

    init(
        _ value: Value,
        key: String,
        in space: KeySpace,
        form: ObjectIdentifier = MemoryEntry.bytes,
        record: Record,
        cost: Int,
        wholeCost: Int? = nil
    ) {
        self.value = value
        self.record = record
        self.wholeCost = wholeCost
        super.init(key: key, in: space, form: form, cost: cost)
    }

    final override var isWhole: Bool { wholeCost == nil }

    final override var anyValue: (any Sendable)? { value }

    final override var created: Timestamp { record.created }

    override func makeRecord() -> Record { record }

    /// Returns an item of a memory tier as a value of this type; nil if its value has another type.
    ///
    /// For most items, which are of exactly this class, this is faster than a cast, which searches the superclasses.
    /// Other items are of the class ``UnstoredValue``.
    static func known(_ item: MemoryEntry) -> MemoryValue? {
        guard type(of: item) == MemoryValue.self else { return item as? MemoryValue }
        return unsafe unsafeDowncast(item, to: MemoryValue.self)
    }

    final override func discarded() -> MemoryEntry? {
        guard let value = value as? any DiscardableValue else { return nil }
        return lesser(of: value)
    }

    private func lesser(of value: some DiscardableValue) -> MemoryEntry? {
        guard let (lesser, cost) = value.discarded(), let lesser = lesser as? Value else { return nil }
        return replacing(lesser, cost: cost, wholeCost: wholeCost ?? self.cost)
    }

    /// Returns the value with its discarded part restored; nil if that fails, so that the value must be read from disk
    /// again.
    final func restored() -> MemoryValue? {
        guard let value = value as? any DiscardableValue, let whole = try? value.restored() as? Value else {
            return nil
        }
        return replacing(whole, cost: wholeCost ?? cost, wholeCost: nil)
    }

    /// Returns the same entry with another form of its value.
    func replacing(_ value: Value, cost: Int, wholeCost: Int?) -> MemoryValue {
        MemoryValue(
            value,
            key: key,
            in: space,
            form: form,
            record: record,
            cost: cost,
            wholeCost: wholeCost
        )
    }
}
