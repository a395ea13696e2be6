// SPDX-License-Identifier: Apache-2.0

import Platform

/// An entry that is to go soon, and the object that it alone names.
struct ListedCandidate: Sendable, Equatable {
    let entry: SeenEntry
    let objectSize: AllocatedSize
}

/// What the file `candidates` says of itself: who is to go next, as the last full sweep has left it.
///
/// ```
///   0  "diskcand"   8  version (4 bytes)   12  count (4)
///  16  boot identity (16)
///  32  the sweep's stamp, ns since 1970
///  40  its clock witness: wall clock, ns since 1970   48  the clock that is never set, ns
///  56  CRC-32C of what is before (4)
///  64  how many were looked at already (8)
///  72  records of 92 bytes, the least recently used first:
///      key (32)  content (32)  last use, ns since 1970 (8)  bytes on disk of the entry (4, AllocatedSize), of the object (4)
///      lower half of the entry's inode number (4)  witness (4)  CRC-32C of what is before (4)
/// ```
///
/// Numbers are little-endian. Made anew by each full sweep and read by whoever trims, both under the `janitor` lock.
/// A hint: where it is missing, damaged, of another boot or version, a trim takes a scan.
struct CandidateList {
    let stamp: SweepStamp
    let count: Int
    /// How many of them were looked at.
    private(set) var position = 0

    /// ``StoreLayout/candidatesSignature``.
    private static let magic: UInt64 = 0x646e_6163_6b73_6964
    private static let version: UInt32 = 1
    private static let headerSize = 72
    private static let positionOffset = 64
    private static let recordSize = 92
    /// Bytes written at a time.
    private static let chunkSize = 1 << 18

    init(stamp: SweepStamp, count: Int) {
        self.stamp = stamp
        self.count = count
    }

    /// Bytes of the file.
    static func size(ofCount count: Int) -> Int { headerSize + count * recordSize }

    // MARK: Writing

    /// Puts it in the place of the last one, in one step.
    ///
    /// Where that fails, on a full disk for instance, the last one stays: its own stamp keeps it safe.
    func write(_ candidates: [ListedCandidate], in directory: StoreDirectory) {
        guard var bytes = header else { return }
        bestEffort { () throws(Errno) in
            let file = try TemporaryFile(in: directory, mode: FileMode.file)
            for candidate in candidates {
                bytes.append(candidate)
                guard bytes.count > Self.chunkSize else { continue }
                try file.file.writeAll(bytes.span)
                bytes.removeAll(keepingCapacity: true)
            }
            try file.file.writeAll(bytes.span)
            try file.rename(to: directory.root, StoreLayout.candidates)
        }
    }

    private var header: [UInt8]? {
        guard let boot = BootIdentity.current else { return nil }
        var bytes: [UInt8] = []
        bytes.append(number: Self.magic)
        bytes.append(number: Self.version)
        bytes.append(number: UInt32(clamping: count))
        bytes.append(number: boot.0)
        bytes.append(number: boot.1)
        bytes.append(number: stamp.time.nanoseconds)
        bytes.append(number: stamp.clock.time.nanoseconds)
        bytes.append(number: stamp.clock.uptime.saturatingNanoseconds)
        bytes.append(number: bytes.checksum())
        bytes.append(number: UInt32(0))
        bytes.append(number: UInt64(position))
        return bytes
    }

    /// Notes how many were looked at; one system call.
    ///
    /// Where that fails, or is not done any more, the next trim looks for some that are gone.
    mutating func advance(by count: Int, in file: borrowing FileDescriptor) {
        position += count
        var bytes: [UInt8] = []
        bytes.append(number: UInt64(position))
        bestEffort { [bytes] () throws(Errno) in try file.write(bytes.span, at: Self.positionOffset) }
    }

    // MARK: Reading

    /// Its file; nil where there is none, or none that can be read.
    static func open(in directory: StoreDirectory) -> FileDescriptor? {
        do throws(Errno) {
            return try directory.root.open(StoreLayout.candidates, .readWrite)
        } catch {
            return nil
        }
    }

    /// Reads the header; nil where it is none, or of another boot.
    ///
    /// - Parameter datesAttributes: as in ``SweepStamp/datesAttributes``.
    init?(in file: borrowing FileDescriptor, datesAttributes: Bool) throws(Errno) {
        let bytes = try file.read(Self.headerSize)
        guard bytes.count == Self.headerSize, let boot = BootIdentity.current else { return nil }
        var reader = ListReader(bytes)
        guard reader.number() == Self.magic, reader.number() == Self.version else { return nil }
        count = Int(reader.number() as UInt32)
        guard (reader.number(), reader.number()) == boot else { return nil }
        let (time, wall, uptime) = (reader.time(), reader.time(), reader.time())
        let clock = ClockWitness(time: wall, uptime: .nanoseconds(uptime.nanoseconds))
        stamp = SweepStamp(time: time, clock: clock, datesAttributes: datesAttributes)
        guard reader.isSound(from: 0) else { return nil }
        _ = reader.number() as UInt32
        position = min(Int(clamping: reader.number() as UInt64), count)
    }

    /// At most so many from the position on, fewer at the end of the list, and where one is damaged.
    ///
    /// One system call; none at the end.
    func next(_ most: Int, in file: borrowing FileDescriptor) throws(Errno) -> [ListedCandidate] {
        let size = min(most, count - position) * Self.recordSize
        if size <= 0 { return [] }
        let bytes = try file.read(size, at: Self.headerSize + position * Self.recordSize)
        var reader = ListReader(bytes)
        var candidates: [ListedCandidate] = []
        candidates.reserveCapacity(most)
        while reader.position + Self.recordSize <= bytes.count, let candidate = reader.candidate() {
            candidates.append(candidate)
        }
        return candidates
    }
}

extension [UInt8] {
    /// Adds a number, the lowest byte first.
    fileprivate mutating func append(number: some FixedWidthInteger) {
        for shift in stride(from: 0, to: number.bitWidth, by: 8) {
            append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    private mutating func append(digest: Digest) {
        for index in 0..<4 { append(number: digest.word(index)) }
    }

    fileprivate mutating func append(_ candidate: ListedCandidate) {
        let start = count
        let entry = candidate.entry
        append(digest: entry.key)
        append(digest: entry.content)
        append(number: entry.lastUse.nanoseconds)
        append(number: entry.allocatedSize.code)
        append(number: candidate.objectSize.code)
        append(number: entry.inode)
        append(number: entry.witness)
        append(number: checksum(start..<count))
    }

    fileprivate func checksum(_ range: Range<Int>? = nil) -> UInt32 {
        var checksum = CRC32C()
        checksum.update(span.extracting(range ?? 0..<count))
        return checksum.value
    }
}

/// Takes numbers from bytes, of which there are enough.
private struct ListReader {
    let bytes: [UInt8]
    private(set) var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func number<Number: FixedWidthInteger>() -> Number {
        defer { position += Number.bitWidth / 8 }
        return (0..<Number.bitWidth / 8).reduce(0) { $0 | Number(bytes[position + $1]) << (8 * $1) }
    }

    mutating func time() -> Timestamp { Timestamp(nanoseconds: Int64(bitPattern: number())) }

    mutating func digest() -> Digest {
        defer { position += 32 }
        return Digest(bytes: InlineArray { bytes[position + $0] })
    }

    /// Whether the checksum of what lies between `start` and here follows.
    mutating func isSound(from start: Int) -> Bool {
        bytes.checksum(start..<position) == number()
    }

    /// nil where it is damaged.
    mutating func candidate() -> ListedCandidate? {
        let start = position
        let (key, content, lastUse) = (digest(), digest(), time())
        let (entrySize, objectSize) = (AllocatedSize(code: number()), AllocatedSize(code: number()))
        let entry = SeenEntry(
            key: key,
            content: content,
            lastUse: lastUse,
            allocatedSize: entrySize,
            inode: number(),
            witness: number()
        )
        return isSound(from: start) ? ListedCandidate(entry: entry, objectSize: objectSize) : nil
    }
}
