// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Synchronization

/// A value that a process holds, whatever its type: what the memory tier finds, judges and evicts.
///
/// A hit looks at the first fields and at the value, which follows in ``HeldValue``: three cache lines in all.
class HeldItem: @unchecked Sendable {
    /// Until then only the generation has to be looked at; from then on the stamp is judged.
    ///
    /// Guarded by the shard's lock.
    private(set) final var due = Timestamp.distantPast
    /// Before that the clock was put back since the value was stored.
    ///
    /// Guarded by the shard's lock.
    private(set) final var start = Timestamp.distantPast
    /// Tells the forms of one key's value apart: the metatype of the codec that has made it.
    final let form: ObjectIdentifier
    /// The key as the tier looks for it.
    ///
    /// Set before the item is in the tier.
    final var name = KeyBytes()
    /// Its place in the eviction queues.
    ///
    /// Guarded by the ledger's lock.
    final var handle: EvictionQueues<HeldItem>.Handle = 0
    /// Hits since it came, up to ``EvictionQueues/highestFrequency``.
    final let frequency = Atomic<UInt8>(0)
    /// Whose the key is.
    final let space: KeySpace
    /// The conditions under which it may be returned.
    ///
    /// Guarded by the shard's lock.
    final var stamp = MemoryStamp() {
        didSet {
            due = isWhole ? stamp.due : .distantPast
            start = created == .distantFuture ? .distantPast : created - Record.clockTolerance
        }
    }
    final let key: String
    /// Its cost in memory.
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

    /// Whether it has all its parts (``DiscardableValue``); else it is judged at each use.
    var isWhole: Bool { true }

    /// The item without its discardable part; nil if it has none.
    ///
    /// Runs the value's own code, so no lock may be held.
    func discarded() -> HeldItem? { nil }

    /// The value, whatever its type; nil if there is none.
    var anyValue: (any Sendable)? { nil }

    /// When the value was stored.
    var created: Timestamp { .distantFuture }

    /// What the cache keeps about the value.
    func makeRecord() -> Record { preconditionFailure("a value has a record") }

    /// The name of the key's entry.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, which are hashed.
    final var entryName: Digest { Digest(ofKey: key, in: space) }

    /// The value's entry for a caller that found it at `moment`; it is made at this call.
    final func entry(at moment: Timestamp) -> CacheEntry {
        CacheEntry(makeRecord(), keyDigest: entryName, key: key, accessed: nil, now: moment)
    }

    /// Whether it is the value of this key, in this form (nil: in any).
    @inline(__always)
    final func isNamed(_ name: KeyBytes, _ key: String, _ form: ObjectIdentifier?) -> Bool {
        self.name.head == name.head && self.name.length == name.length && (form == nil || self.form == form)
            && (name.length <= KeyBytes.Head.capacity || self.key.hasSameBytes(as: key))
    }
}

/// A value as a process holds it, as it was stored or as a typed view decoded it, with its record.
class HeldValue<Value: Sendable>: HeldItem, @unchecked Sendable {
    final let value: Value
    final let record: Record
    /// Its cost with the part that it has dropped (``DiscardableValue``); nil if it has dropped none.
    final let wholeCost: Int?

    init(
        _ value: Value,
        key: String,
        in space: KeySpace,
        form: ObjectIdentifier = HeldItem.bytes,
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

    /// The item of a memory tier as a value of this type; nil if it is of another type.
    ///
    /// Most are of this very class, which takes no search for superclasses; others are ``UnstoredValue``.
    static func known(_ item: HeldItem) -> HeldValue? {
        guard type(of: item) == HeldValue.self else { return item as? HeldValue }
        return unsafe unsafeDowncast(item, to: HeldValue.self)
    }

    final override func discarded() -> HeldItem? {
        guard let value = value as? any DiscardableValue else { return nil }
        return lesser(of: value)
    }

    private func lesser(of value: some DiscardableValue) -> HeldItem? {
        guard let (lesser, cost) = value.discarded(), let lesser = lesser as? Value else { return nil }
        return replacing(lesser, cost: cost, wholeCost: wholeCost ?? self.cost)
    }

    /// The value with the part that it has dropped; nil if that fails: it is then read from disk again.
    final func restored() -> HeldValue? {
        guard let value = value as? any DiscardableValue, let whole = try? value.restored() as? Value else {
            return nil
        }
        return replacing(whole, cost: wholeCost ?? cost, wholeCost: nil)
    }

    /// The same entry with another form of its value.
    func replacing(_ value: Value, cost: Int, wholeCost: Int?) -> HeldValue {
        HeldValue(
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
