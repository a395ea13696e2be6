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
struct CandidateList: Equatable {
    let stamp: Timestamp
    let clock: (time: Timestamp, uptime: Duration)
    let count: Int
    /// How many of them were looked at.
    private(set) var position = 0

    private static let magic: UInt64 = 0x646e_6163_6b73_6964
    private static let version: UInt32 = 1
    private static let headerSize = 72
    private static let positionOffset = 64
    private static let recordSize = 92
    /// Bytes written at a time.
    private static let chunkSize = 1 << 18

    init(stamp: Timestamp, clock: ClockWitness, count: Int) {
        self.stamp = stamp
        self.clock = (clock.time, clock.uptime)
        self.count = count
    }

    static func == (left: CandidateList, right: CandidateList) -> Bool {
        left.stamp == right.stamp && left.clock == right.clock && left.count == right.count
            && left.position == right.position
    }

    /// By which to tell whether change times can still be compared with the stamp.
    var witness: ClockWitness { ClockWitness(time: clock.time, uptime: clock.uptime) }

    /// Bytes of the file.
    static func size(ofCount count: Int) -> Int { headerSize + count * recordSize }

    // MARK: Writing

    /// Puts it in the place of the last one, in one step.
    ///
    /// Where that fails, on a full disk for instance, the last one stays: its own stamp keeps it safe.
    func write(_ candidates: [ListedCandidate], in directory: StoreDirectory) {
        guard let boot = BootIdentity.current else { return }
        bestEffort { () throws(Errno) in
            let file = try TemporaryFile(in: directory, mode: FileMode.file)
            var writer = ListWriter()
            writer.append(Self.magic)
            writer.append(Self.version)
            writer.append(UInt32(clamping: count))
            writer.append(boot.0)
            writer.append(boot.1)
            writer.append(UInt64(bitPattern: stamp.nanoseconds))
            writer.append(UInt64(bitPattern: clock.time.nanoseconds))
            writer.append(UInt64(bitPattern: clock.uptime.saturatingNanoseconds))
            writer.appendChecksum(from: 0)
            writer.append(UInt32(0))
            writer.append(UInt64(position))
            for candidate in candidates {
                writer.append(candidate)
                guard writer.bytes.count > Self.chunkSize else { continue }
                try file.file.writeAll(writer.bytes.span)
                writer.bytes.removeAll(keepingCapacity: true)
            }
            try file.file.writeAll(writer.bytes.span)
            try file.rename(to: directory.root, StoreLayout.candidates)
        }
    }

    /// Notes how many were looked at; one system call.
    ///
    /// Where that fails, or is not done any more, the next trim looks for some that are gone.
    mutating func advance(by count: Int, in file: borrowing FileDescriptor) {
        position += count
        var writer = ListWriter()
        writer.append(UInt64(position))
        bestEffort { [bytes = writer.bytes] () throws(Errno) in
            try file.write(bytes.span, at: Self.positionOffset)
        }
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

    /// Whether a file begins as such lists of all boots and versions do.
    static func isList(_ file: borrowing FileDescriptor) throws(Errno) -> Bool {
        var reader = ListReader(try file.read(8))
        return reader.bytes.count == 8 && reader.number() == magic
    }

    /// Reads the header; nil where it is none, or of another boot.
    init?(in file: borrowing FileDescriptor) throws(Errno) {
        var reader = ListReader(try file.read(Self.headerSize))
        guard reader.bytes.count == Self.headerSize, let boot = BootIdentity.current,
            reader.number() == Self.magic, reader.half() == Self.version
        else { return nil }
        count = Int(reader.half())
        guard (reader.number(), reader.number()) == boot else { return nil }
        stamp = reader.time()
        clock = (reader.time(), .nanoseconds(Int64(bitPattern: reader.number())))
        guard reader.checksum(from: 0) == reader.half() else { return nil }
        _ = reader.half()
        position = min(Int(clamping: reader.number()), count)
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

/// Puts numbers in bytes, the lowest first.
private struct ListWriter {
    var bytes: [UInt8] = []

    mutating func append(_ number: some FixedWidthInteger) {
        for index in 0..<number.bitWidth / 8 {
            bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index)))
        }
    }

    mutating func append(_ digest: Digest) {
        for index in 0..<4 { append(digest.word(index)) }
    }

    mutating func append(_ candidate: ListedCandidate) {
        let start = bytes.count
        let entry = candidate.entry
        append(entry.key)
        append(entry.content)
        append(entry.lastUse.nanoseconds)
        append(entry.allocatedSize.code)
        append(candidate.objectSize.code)
        append(entry.inode)
        append(entry.witness)
        appendChecksum(from: start)
    }

    mutating func appendChecksum(from start: Int) {
        var checksum = CRC32C()
        checksum.update(bytes.span.extracting(droppingFirst: start))
        append(checksum.value)
    }
}

/// Takes numbers from bytes, of which there are enough.
private struct ListReader {
    let bytes: [UInt8]
    private(set) var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    private mutating func take(_ count: Int) -> UInt64 {
        defer { position += count }
        return (0..<count).reduce(0) { $0 | UInt64(bytes[position + $1]) << UInt64(8 * $1) }
    }

    mutating func number() -> UInt64 { take(8) }

    mutating func half() -> UInt32 { UInt32(truncatingIfNeeded: take(4)) }

    mutating func time() -> Timestamp { Timestamp(nanoseconds: Int64(bitPattern: number())) }

    mutating func digest() -> Digest {
        var digest = InlineArray<32, UInt8>(repeating: 0)
        for index in 0..<32 { digest[index] = bytes[position + index] }
        position += 32
        return Digest(bytes: digest)
    }

    func checksum(from start: Int) -> UInt32 {
        var checksum = CRC32C()
        checksum.update(bytes.span.extracting(start..<position))
        return checksum.value
    }

    /// nil where it is damaged.
    mutating func candidate() -> ListedCandidate? {
        let start = position
        let (key, content, lastUse) = (digest(), digest(), time())
        let (entrySize, objectSize) = (AllocatedSize(code: half()), AllocatedSize(code: half()))
        let entry = SeenEntry(
            key: key,
            content: content,
            lastUse: lastUse,
            allocatedSize: entrySize,
            inode: half(),
            witness: half()
        )
        guard checksum(from: start) == half() else { return nil }
        return ListedCandidate(entry: entry, objectSize: objectSize)
    }
}
