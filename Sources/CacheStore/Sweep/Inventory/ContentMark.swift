// SPDX-License-Identifier: Apache-2.0

/// The mark: all contents that a sweep has come across, each once, with 16 bytes a place.
///
/// So an object with an entry of its own takes 21 to 43 bytes here.
/// Where two contents share a mark its references are those of both, so neither is unreferenced while either is named:
/// what is named is never deleted, and what is spared that way the next sweep finds. Nor is an entry taken for dangling
/// whose object is there.
///
/// A billion contents would take 32 GiB. Should that be asked for: the fingerprint's leading bits tell a range of
/// contents, and a sweep would pass over the entries once for each range, noting those only.
typealias ContentMarks = FingerprintTable<ContentMark>

/// What a sweep keeps of a content: something that entries name, or an object that was found; 8 bytes.
struct ContentMark: Sendable {
    /// What is known of its object.
    enum Presence: UInt32, Sendable {
        /// It was not found.
        case absent
        case present
        /// It is there, but could not be looked at.
        case unreadable
    }

    /// Bytes on disk of its object.
    var allocatedSize = AllocatedSize(bytes: 0)
    /// From the highest bit: 21 of references, 4 of the reason, 3 of the size class, 2 of the presence.
    private var bits: UInt32 = 0

    /// So many, or more: it is not known how many, and the object is never unreferenced.
    static let mostReferences = 1 << 21 - 1

    private subscript(shift: UInt32, width: UInt32) -> Int {
        get { Int(bits >> shift & (1 << width - 1)) }
        set { bits = bits & ~((1 << width - 1) << shift) | UInt32(newValue) << shift }
    }

    /// Entries that name it, as far as they are not deleted.
    private(set) var references: Int {
        get { self[11, 21] }
        set { self[11, 21] = newValue }
    }

    /// Why the last entry that named it was deleted; nil where none was.
    private(set) var freed: RemovalReason? {
        get { self[5, 4] == 0 ? nil : RemovalReason.allCases[self[5, 4] - 1] }
        set {
            self[5, 4] = newValue.flatMap { RemovalReason.allCases.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
        }
    }

    /// What is expected of its size: its class in ``SweepAllocation``; that of no length where entries differ, or none
    /// names it.
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

    /// Takes down that an entry names it, and the class of the length that this one states.
    mutating func noteReference(sizeClass: UInt8) {
        self.sizeClass =
            references == 0 || self.sizeClass == sizeClass ? sizeClass : SweepAllocation.unknownClass
        references = min(references + 1, Self.mostReferences)
    }

    /// Takes down that an entry that named it is gone; whether it was the last.
    mutating func noteRemoval(_ reason: RemovalReason) -> Bool {
        guard references > 0, references < Self.mostReferences else { return false }
        references -= 1
        if references == 0 { freed = reason }
        return references == 0
    }
}
