// SPDX-License-Identifier: Apache-2.0

import Platform

/// The contents of the file `versions`.
///
/// ```
/// bytes   0…  7  "dcverses"
/// bytes   8… 15  the number of this machine
/// bytes  16… 23  the limit of the clock: no version drawn on this machine is later
/// bytes  24… 31  floor: at least each version that was lost with an earlier file; all ones until it is known
/// bytes  32… 39  values of servers are taken only if their version is higher
/// bytes  40… 47  1 while changes are made without a control file, and so without versions; otherwise 0
/// then 0 up to
/// byte      256  the buckets (VersionBucket): first those of the keys of the first stripe, and so on
/// ```
///
/// Numbers are little-endian. The header is changed by the holder of the lock of the file (flock(2)), and a bucket by the
/// holder of the stripe of its keys.
struct VersionFileHeader: Equatable {
    static let signature = Array("dcverses".utf8)
    static let byteCount = 48

    let machine: UInt64
    var limit: ChangeVersion
    var floor: ChangeVersion
    var cleared = ChangeVersion.none
    /// Whether changes have been made without versions since the last control file.
    var hasUnversioned = false

    init(machine: UInt64, limit: ChangeVersion, floor: ChangeVersion) {
        (self.machine, self.limit, self.floor) = (machine, limit, floor)
    }

    /// Reads ``bytes``; nil if they are damaged.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, bytes.starts(with: Self.signature) else { return nil }
        var reader = ByteReader(bytes, Self.signature.count..<bytes.count)
        func number() -> UInt64 { reader.number(width: 8) ?? 0 }
        machine = number()
        limit = ChangeVersion(rawValue: number())
        floor = ChangeVersion(rawValue: number())
        cleared = ChangeVersion(rawValue: number())
        hasUnversioned = number() != 0
    }

    var bytes: [UInt8] {
        var bytes = Self.signature
        bytes.append(machine, width: 8)
        bytes.append(limit.rawValue, width: 8)
        bytes.append(floor.rawValue, width: 8)
        bytes.append(cleared.rawValue, width: 8)
        bytes.append(hasUnversioned ? 1 : 0, width: 8)
        return bytes
    }

    /// Returns the lowest version that a value of a server must exceed to be taken, at `now`: no change without a version
    /// was made later.
    func cleared(at now: Timestamp) -> ChangeVersion {
        // No version that was drawn or taken here is later than the limit.
        hasUnversioned ? max(cleared, limit, ChangeVersion(at: now, machine: .max)) : cleared
    }

    /// Whether the file is new, and its creator has not set the floor yet.
    var isUnsettled: Bool { floor == .highest }
}

/// The places of buckets in the file `versions`.
enum VersionFileLayout {
    /// For 61,440 keys.
    static let buckets = 4096
    static let byteCount = (1 + buckets) * VersionBucket.byteCount

    /// Returns the offset of the bucket of a key; no two stripes share a bucket.
    static func offset(of key: Digest) -> Int {
        let share = buckets / StoreLayout.stripeCount
        let bucket = key.stripe * share + Int(key.word(1) % UInt64(share))
        return (1 + bucket) * VersionBucket.byteCount
    }
}
