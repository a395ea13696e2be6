// SPDX-License-Identifier: Apache-2.0

import Platform

/// One of the next entries to evict, with the size of the object that only this entry names.
struct ListedCandidate: Sendable, Equatable {
    let entry: SeenEntry
    let objectSize: AllocatedSize
}

/// The header of the file `candidates`: the next entries to evict, as the last full sweep listed them.
///
/// ```
///   0  "diskcand"   8  version (4 bytes)   12  count (4)
///  16  boot identity (16)
///  32  the sweep's stamp, ns since 1970
///  40  the sweep's clock readings: wall clock, ns since 1970   48  monotonic clock, ns
///  56  CRC-32C of the preceding bytes (4)
///  64  number of records that were already processed (8)
///  72  records of 92 bytes, the least recently used first:
///      key (32)  content (32)  last use, ns since 1970 (8)  bytes on disk of the entry (4, AllocatedSize), of the object (4)
///      lower half of the entry's inode number (4)  witness (4)  CRC-32C of the record's preceding bytes (4)
/// ```
///
/// Numbers are little-endian. Each full sweep rewrites the file, and each eviction without a scan reads it, both under the
/// `janitor` lock. The file is a hint: if it is missing, damaged, or of another boot or version, an eviction needs a scan.
struct CandidateList {
    let stamp: SweepStamp
    let count: Int
    /// The number of candidates that were already processed.
    private(set) var position = 0

    /// ``StoreLayout/candidatesSignature``.
    private static let magic: UInt64 = 0x646e_6163_6b73_6964
    private static let version: UInt64 = 1
    private static let headerSize = 72
    private static let positionOffset = 64
    private static let recordSize = 92
    /// Bytes written at a time.
    private static let chunkSize = 1 << 18

    init(stamp: SweepStamp, count: Int) {
        self.stamp = stamp
        self.count = count
    }

    /// Returns the size of the file in bytes.
    static func size(ofCount count: Int) -> Int { headerSize + count * recordSize }

    // MARK: Writing

    /// Replaces the previous list atomically.
    ///
    /// If that fails, for instance because the disk is full, the previous list remains. It is still safe to use, because
    /// it has its own stamp.
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
        bytes.append(Self.magic, width: 8)
        bytes.append(Self.version, width: 4)
        bytes.append(UInt64(UInt32(clamping: count)), width: 4)
        let times =
            [stamp.time, stamp.clock.time].map(\.nanoseconds) + [stamp.clock.uptime.saturatingNanoseconds]
        for number in [boot.0, boot.1] + times.map(UInt64.init(bitPattern:)) {
            bytes.append(number, width: 8)
        }
        bytes.append(bytes.checksum(from: 0), width: 8)
        bytes.append(UInt64(position), width: 8)
        return bytes
    }

    /// Records that `count` more candidates were processed; one system call.
    ///
    /// If the write fails, or the process is killed before it, the next eviction tries entries that are already deleted.
    mutating func advance(by count: Int, in file: borrowing FileDescriptor) {
        position += count
        var bytes: [UInt8] = []
        bytes.append(UInt64(position), width: 8)
        bestEffort { [bytes] () throws(Errno) in try file.write(bytes.span, at: Self.positionOffset) }
    }

    // MARK: Reading

    /// Opens the file of the list; returns nil if it is missing or unreadable.
    static func open(in directory: StoreDirectory) -> FileDescriptor? {
        bestEffort { () throws(Errno) in try directory.root.open(StoreLayout.candidates, .readWrite) }
    }

    /// Reads the header; returns nil if it is invalid or was written before the machine restarted.
    ///
    /// - Parameter datesAttributes: as in ``SweepStamp/datesAttributes``.
    init?(in file: borrowing FileDescriptor, datesAttributes: Bool) throws(Errno) {
        let bytes = try file.read(Self.headerSize)
        var reader = ByteReader(bytes)
        guard let boot = BootIdentity.current, reader.number(width: 8) == Self.magic,
            reader.number(width: 4) == Self.version, let count = reader.number(width: 4),
            reader.number(width: 8) == boot.0, reader.number(width: 8) == boot.1,
            let time = reader.number(width: 8), let wall = reader.number(width: 8),
            let uptime = reader.number(width: 8), reader.number(width: 4) == bytes.checksum(from: 0, to: 56),
            reader.number(width: 4) != nil, let position = reader.number(width: 8)
        else { return nil }
        let clock = ClockCheck(
            time: Timestamp(nanoseconds: Int64(bitPattern: wall)),
            uptime: .nanoseconds(Int64(bitPattern: uptime))
        )
        let stampTime = Timestamp(nanoseconds: Int64(bitPattern: time))
        stamp = SweepStamp(time: stampTime, clock: clock, datesAttributes: datesAttributes)
        self.count = Int(count)
        self.position = min(Int(clamping: position), self.count)
    }

    /// Returns the next candidates, at most `most`; fewer at the end of the list or before a damaged record.
    ///
    /// One system call; none at the end of the list.
    func next(_ most: Int, in file: borrowing FileDescriptor) throws(Errno) -> [ListedCandidate] {
        let size = min(most, count - position) * Self.recordSize
        if size <= 0 { return [] }
        let bytes = try file.read(size, at: Self.headerSize + position * Self.recordSize)
        var reader = ByteReader(bytes)
        var candidates: [ListedCandidate] = []
        candidates.reserveCapacity(most)
        while let candidate = ListedCandidate(&reader, in: bytes) { candidates.append(candidate) }
        return candidates
    }
}

extension ListedCandidate {
    /// Reads the next record from `bytes`; returns nil if it is damaged or missing.
    fileprivate init?(_ reader: inout ByteReader, in bytes: [UInt8]) {
        let start = reader.position
        guard let key = reader.digest(), let content = reader.digest(), let lastUse = reader.number(width: 8),
            let entrySize = reader.number(width: 4), let objectSize = reader.number(width: 4),
            let inode = reader.number(width: 4), let witness = reader.number(width: 4),
            reader.number(width: 4) == bytes.checksum(from: start, to: reader.position - 4)
        else { return nil }
        entry = SeenEntry(
            key: key,
            content: content,
            lastUse: Timestamp(nanoseconds: Int64(bitPattern: lastUse)),
            allocatedSize: AllocatedSize(code: UInt32(entrySize)),
            inode: UInt32(inode),
            witness: UInt32(witness)
        )
        self.objectSize = AllocatedSize(code: UInt32(objectSize))
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ candidate: ListedCandidate) {
        let (start, entry) = (count, candidate.entry)
        append(entry.key)
        append(entry.content)
        append(UInt64(bitPattern: entry.lastUse.nanoseconds), width: 8)
        append(UInt64(entry.allocatedSize.code), width: 4)
        append(UInt64(candidate.objectSize.code), width: 4)
        append(UInt64(entry.inode), width: 4)
        append(UInt64(entry.witness), width: 4)
        append(checksum(from: start), width: 4)
    }

    fileprivate func checksum(from start: Int, to end: Int? = nil) -> UInt64 {
        var checksum = CRC32C()
        checksum.update(span.extracting(start..<(end ?? count)))
        return UInt64(checksum.value)
    }
}
