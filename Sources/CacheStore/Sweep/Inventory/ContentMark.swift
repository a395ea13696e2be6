// SPDX-License-Identifier: Apache-2.0

/// All contents that a sweep has found, with a mark for each; 16 bytes per slot of the table.
///
/// So an object with a single entry takes 21 to 43 bytes here.
///
/// If two contents share a mark, its references are the sum of both, so neither counts as unreferenced while the other is
/// named. So no object that is named is ever deleted, and the next sweep finds an orphan that was spared this way.
/// Likewise no entry counts as dangling while its object exists.
///
/// A billion contents would take 32 GiB. If that is ever needed, a sweep could read all entries several times, and record
/// in each pass only the contents whose fingerprints begin with certain bits.
typealias ContentMarks = FingerprintTable<ContentMark>

/// The state of a content that an entry names or whose object was found; 8 bytes.
struct ContentMark: Sendable {
    /// The state of the object.
    enum Presence: UInt32, Sendable {
        /// The object was not found.
        case absent
        case present
        /// The object exists but its status could not be read.
        case unreadable
    }

    /// The bytes on disk of the object.
    var allocatedSize = AllocatedSize(bytes: 0)
    /// From the highest bit: 21 bits of references, 2 unused, 4 of the reason, 3 of the size class, 2 of the presence.
    private var bits: UInt32 = 0

    /// The largest count of references: the real one may be higher, so an object with this count never becomes
    /// unreferenced.
    static let mostReferences = 1 << 21 - 1

    private subscript(shift: UInt32, width: UInt32) -> Int {
        get { Int(bits >> shift & (1 << width - 1)) }
        set { bits = bits & ~((1 << width - 1) << shift) | UInt32(newValue) << shift }
    }

    /// The number of entries that name the content and are not deleted.
    private(set) var references: Int {
        get { self[11, 21] }
        set { self[11, 21] = newValue }
    }

    /// Why the last entry that named the content was deleted; nil until that happens.
    private(set) var freed: RemovalReason? {
        get { self[5, 4] == 0 ? nil : RemovalReason.allCases[self[5, 4] - 1] }
        set {
            self[5, 4] = newValue.flatMap { RemovalReason.allCases.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
        }
    }

    /// The class of the object's size in ``SweepAllocation``; the unknown class if entries state different lengths, or if
    /// no entry names the content.
    private(set) var sizeClass: UInt8 {
        get { UInt8(self[2, 3]) }
        set { self[2, 3] = Int(newValue) }
    }

    var presence: Presence {
        get { Presence(rawValue: UInt32(self[0, 2])) ?? .unreadable }
        set { self[0, 2] = Int(newValue.rawValue) }
    }

    /// Whether entries name the content and its object was not found.
    var isMissing: Bool { references > 0 && presence == .absent }

    /// Records an entry that names the content, and the size class of the length that the entry states.
    mutating func noteReference(sizeClass: UInt8) {
        self.sizeClass =
            references == 0 || self.sizeClass == sizeClass ? sizeClass : SweepAllocation.unknownClass
        references = min(references + 1, Self.mostReferences)
    }

    /// Records the deletion of an entry that named the content; returns whether no other entry names it.
    mutating func noteRemoval(_ reason: RemovalReason) -> Bool {
        guard references > 0, references < Self.mostReferences else { return false }
        references -= 1
        if references == 0 { freed = reason }
        return references == 0
    }
}
