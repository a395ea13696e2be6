// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// What tells of a value that was found, looked at only when that is asked for.
protocol HitSource: AnyObject, Sendable {
    var key: String { get }
    var keyDigest: Digest { get }
    func makeRecord() -> Record
}

/// Where a hit came from and when: its entry is made of it when somebody wants that.
struct HitOrigin: Sendable {
    let source: any HitSource
    let moment: Timestamp

    var entry: CacheEntry {
        CacheEntry(
            source.makeRecord(),
            keyDigest: source.keyDigest,
            key: source.key,
            accessed: nil,
            now: moment
        )
    }
}

/// A value as a process holds it: what was stored, or what a typed view made of it, with its record.
final class HeldValue<Value: Sendable>: HitSource {
    // What each hit looks at comes first, mostly in one cache line with the count of references.
    let value: Value
    /// Whether it has dropped its costly part.
    let isDiscarded: Bool
    let key: String
    let keyDigest: Digest
    let record: Record
    /// What the whole value costs in memory.
    let cost: Int
    /// The record as it is on disk, where copies must be held against that before each use.
    let storedRecord: [UInt8]?

    init(
        _ value: Value,
        key: String,
        keyDigest: Digest,
        record: Record,
        cost: Int,
        storedRecord: [UInt8]? = nil,
        isDiscarded: Bool = false
    ) {
        self.value = value
        self.key = key
        self.keyDigest = keyDigest
        self.record = record
        self.cost = cost
        self.storedRecord = storedRecord
        self.isDiscarded = isDiscarded
    }

    func makeRecord() -> Record { record }

    /// What a memory tier has kept, where it is one of these; no search for conformances and superclasses.
    static func known(_ item: any MemoryItem) -> HeldValue? {
        guard type(of: item) == HeldValue.self else { return nil }
        return unsafe unsafeDowncast(item, to: HeldValue.self)
    }

    /// The same entry with another form of its value.
    private func replacing(_ value: Value, isDiscarded: Bool) -> HeldValue {
        HeldValue(
            value,
            key: key,
            keyDigest: keyDigest,
            record: record,
            cost: cost,
            storedRecord: storedRecord,
            isDiscarded: isDiscarded
        )
    }
}

/// A value that was found in memory, and when.
struct FoundValue<Value: Sendable> {
    let held: HeldValue<Value>
    let moment: Timestamp
}

/// A value in memory that has dropped its costly part, and can make it again.
protocol RestorableItem: MemoryItem {
    func restored() throws -> any MemoryItem
}

extension HeldValue: DiscardableItem, RestorableItem where Value: DiscardableValue {
    func discarded() -> (item: any MemoryItem, cost: Int)? {
        value.discarded().map { (replacing($0.value, isDiscarded: true), $0.cost) }
    }

    func restored() throws -> any MemoryItem {
        replacing(try value.restored(), isDiscarded: false)
    }
}
