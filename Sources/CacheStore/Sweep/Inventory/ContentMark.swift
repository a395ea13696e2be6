// SPDX-License-Identifier: Apache-2.0

/// The mark: all contents that a sweep has found, each once, with 16 bytes per slot.
///
/// So an object with its own entry takes 21 to 43 bytes here.
///
/// If two contents share a mark, its references are the sum of both, so neither is unreferenced while either is named: a
/// named object is never deleted, and the next sweep finds an object that is spared this way. Likewise no entry is treated
/// as dangling while its object exists.
///
/// A billion contents would take 32 GiB. If that is ever needed: the leading bits of the fingerprint select a range of
/// contents, and a sweep would read all entries once for each range and record only the contents in that range.
typealias ContentMarks = FingerprintTable<ContentMark>

/// The state of one content, which entries name or whose object was found; 8 bytes.
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
    /// From the highest bit: 21 of references, 4 of the reason, 3 of the size class, 2 of the presence.
    private var bits: UInt32 = 0

    /// The largest count: the real one may be higher, so the object never becomes unreferenced.
    static let mostReferences = 1 << 21 - 1

    private subscript(shift: UInt32, width: UInt32) -> Int {
        get { Int(bits >> shift & (1 << width - 1)) }
        set { bits = bits & ~((1 << width - 1) << shift) | UInt32(newValue) << shift }
    }

    /// The number of entries that name it and are not deleted.
    private(set) var references: Int {
        get { self[11, 21] }
        set { self[11, 21] = newValue }
    }

    /// Why the last entry that named it was deleted; nil if none was.
    private(set) var freed: RemovalReason? {
        get { self[5, 4] == 0 ? nil : RemovalReason.allCases[self[5, 4] - 1] }
        set {
            self[5, 4] = newValue.flatMap { RemovalReason.allCases.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
        }
    }

    /// The class of its size in ``SweepAllocation``; the unknown class if entries state different lengths, or if none names
    /// it.
    private(set) var sizeClass: UInt8 {
        get { UInt8(self[2, 3]) }
        set { self[2, 3] = Int(newValue) }
    }

    var presence: Presence {
        get { Presence(rawValue: UInt32(self[0, 2])) ?? .unreadable }
        set { self[0, 2] = Int(newValue.rawValue) }
    }

    /// Whether entries name it and no object was found.
    var isMissing: Bool { references > 0 && presence == .absent }

    /// Records an entry that names it, and the class of the length that the entry states.
    mutating func noteReference(sizeClass: UInt8) {
        self.sizeClass =
            references == 0 || self.sizeClass == sizeClass ? sizeClass : SweepAllocation.unknownClass
        references = min(references + 1, Self.mostReferences)
    }

    /// Records the deletion of an entry that named it; returns whether it was the last.
    mutating func noteRemoval(_ reason: RemovalReason) -> Bool {
        guard references > 0, references < Self.mostReferences else { return false }
        references -= 1
        if references == 0 { freed = reason }
        return references == 0
    }
}
