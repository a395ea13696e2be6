// SPDX-License-Identifier: Apache-2.0

/// The versions that a machine has seen of up to 15 keys whose entries are gone.
///
/// ```
/// bytes  0… 7  floor: at least the version of each removal that was dropped
/// bytes  8…15  0
/// then 15 pairs:
///        0… 7  the third word of the key's digest; the lowest bit is 1 if the key was ever removed, else 0; 0 if unused
///        8…15  the latest version of the key
/// ```
///
/// If there is no room, the oldest version of a key that was only evicted is dropped: this machine may then take an older
/// value of that key, if a server has gone back to one. The version of a removed key is dropped only if there is no
/// other, and raises the floor: no removed value returns.
struct VersionBucket: Equatable {
    static let capacity = 15
    static let byteCount = 16 * (1 + capacity)

    struct Slot: Equatable {
        /// 0 if the slot is unused.
        var tag: UInt64 = 0
        var version = ChangeVersion.none

        var isUnused: Bool { tag == 0 }
        var isRemoval: Bool { tag & 1 == 1 }

        /// Returns whether `one` is dropped before `other` if there is no room.
        static func isDroppedFirst(_ one: Slot, _ other: Slot) -> Bool {
            one.isRemoval == other.isRemoval ? one.version < other.version : other.isRemoval
        }
    }

    private(set) var floor = ChangeVersion.none
    private(set) var slots = [Slot](repeating: Slot(), count: capacity)

    init() {}

    /// Reads ``bytes``; nil for a different number of bytes.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        var reader = ByteReader(bytes)
        func number() -> UInt64 { reader.number(width: 8) ?? 0 }
        floor = ChangeVersion(rawValue: number())
        _ = number()
        for place in slots.indices {
            slots[place] = Slot(tag: number(), version: ChangeVersion(rawValue: number()))
        }
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        bytes.append(floor.rawValue, width: 8)
        bytes.append(0, width: 8)
        for slot in slots {
            bytes.append(slot.tag, width: 8)
            bytes.append(slot.version.rawValue, width: 8)
        }
        return bytes
    }

    private static func tag(of key: Digest) -> UInt64 { max(2, key.word(2) & ~1) }

    /// Returns the latest version of `key` that was remembered; nil if it was not, or was dropped.
    func version(of key: Digest) -> ChangeVersion? {
        let tag = Self.tag(of: key)
        return slots.first { $0.tag & ~1 == tag }?.version
    }

    /// Remembers a version of a key, which may replace that of another key.
    ///
    /// - Parameter isRemoval: whether the change was a removal, and not an eviction of a value that the change stored.
    mutating func remember(_ version: ChangeVersion, of key: Digest, isRemoval: Bool) {
        let tag = Self.tag(of: key)
        let mark: UInt64 = isRemoval ? 1 : 0
        if let place = slots.firstIndex(where: { $0.tag & ~1 == tag }) {
            slots[place].tag |= mark
            slots[place].version = max(slots[place].version, version)
            return
        }
        let new = Slot(tag: tag | mark, version: version)
        if let place = slots.firstIndex(where: \.isUnused) {
            slots[place] = new
            return
        }
        let least = slots.indices.min { Slot.isDroppedFirst(slots[$0], slots[$1]) } ?? 0
        let isNewLeast = Slot.isDroppedFirst(new, slots[least])
        let dropped = isNewLeast ? new : slots[least]
        if dropped.isRemoval { floor = max(floor, dropped.version) }
        if !isNewLeast { slots[least] = new }
    }
}
