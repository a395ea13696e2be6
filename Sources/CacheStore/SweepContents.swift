// SPDX-License-Identifier: Apache-2.0

import Platform

/// Something that entries name, or an object that was found: 48 bytes.
struct SeenContent: Sendable {
    /// What is known of its object.
    enum Presence: UInt8, Sendable {
        /// It was not found, or is deleted by now.
        case absent
        case present
        /// It is there, but could not be looked at.
        case unreadable
    }

    let digest: Digest
    /// Bytes on disk of its object.
    var allocatedSize = AllocatedSize(bytes: 0)
    /// The lower half of its inode number.
    var inode: UInt32 = 0
    /// Entries that name it, as far as they are not deleted.
    var references: UInt32 = 0
    var presence = Presence.absent
    /// What is expected of its size: its class in ``SweepAllocation``; that of no length where entries differ, or none
    /// names it.
    private(set) var sizeClass = SweepAllocation.unknownClass
    /// Why the last entry that named it was deleted; nil where none was.
    var freed: SweepReason?
    /// Whether its object was to be deleted already, and stayed if it did.
    var isDecided = false

    init(digest: Digest) {
        self.digest = digest
    }

    /// Takes down that an entry names it, and the class of the length that this one states.
    mutating func noteReference(sizeClass: UInt8) {
        self.sizeClass =
            references == 0 || self.sizeClass == sizeClass ? sizeClass : SweepAllocation.unknownClass
        references += 1
    }
}

/// All contents that a sweep has come across, each once, found by their digest.
///
/// A hash table with open addressing, of places in a list: 48 bytes and 5 to 11 for one content.
struct SweepContents {
    private var contents = Segments<SeenContent>()
    /// Places in `contents`, ``vacant`` where there is none; a power of two of them, at most three quarters in
    /// use.
    private var slots = [UInt32](repeating: Self.vacant, count: 256)
    /// Random, so that nobody can choose digests that collide.
    private let seed = SIMD4<UInt64>.random(in: 0 ... .max)
    /// Shards of the objects that could not be listed: nothing is known of what is in them.
    private var unreadableShards: Set<UInt8> = []

    private static let vacant = UInt32.max

    var count: Int { contents.count }

    subscript(index: UInt32) -> SeenContent {
        get { contents[Int(index)] }
        _modify { yield &contents[Int(index)] }
    }

    /// The place of `digest`, a new one if it was not known.
    mutating func place(of digest: Digest) -> UInt32 {
        let words = digest.words
        var slot = firstSlot(words)
        while slots[slot] != Self.vacant {
            if contents[Int(slots[slot])].digest.words == words { return slots[slot] }
            slot = (slot + 1) & (slots.count - 1)
        }
        // A file system has no more inodes than fit 32 bits where a sweep could hold as many.
        let place = UInt32(contents.count)
        contents.append(SeenContent(digest: digest))
        slots[slot] = place
        if contents.count * 4 > slots.count * 3 { grow() }
        return place
    }

    private mutating func grow() {
        slots = [UInt32](repeating: Self.vacant, count: slots.count * 2)
        for index in 0..<contents.count {
            var slot = firstSlot(contents[index].digest.words)
            while slots[slot] != Self.vacant { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = UInt32(index)
        }
    }

    /// Products of seeded words, both halves of each: what differs anywhere in the digest differs here.
    private func firstSlot(_ words: SIMD4<UInt64>) -> Int {
        let mixed = words ^ seed
        let first = mixed[0].multipliedFullWidth(by: mixed[1])
        let second = mixed[2].multipliedFullWidth(by: mixed[3])
        let hash = first.high ^ first.low ^ second.high ^ second.low
        return Int(truncatingIfNeeded: hash) & (slots.count - 1)
    }

    /// Says that nothing is known of the objects in a shard.
    mutating func noteUnreadable(shard: Int) {
        unreadableShards.insert(UInt8(truncatingIfNeeded: shard))
    }

    /// Whether the object is gone for sure.
    func isMissing(_ index: UInt32) -> Bool {
        let content = self[index]
        return content.presence == .absent && !unreadableShards.contains(content.digest.bytes[0])
    }
}

extension Digest {
    /// The same bytes in four words.
    fileprivate var words: SIMD4<UInt64> { unsafe unsafeBitCast(bytes, to: SIMD4<UInt64>.self) }
}
