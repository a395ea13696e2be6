// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The pack to which this process appends records.
///
/// Used under a lock: one thread appends at a time.
struct PackWriter: ~Copyable {
    private let index: PackIndex
    private let files: PackFiles
    /// The record being written, kept to save an allocation.
    private var buffer: [UInt8] = []
    private var open: Pack?
    /// The row where the search for a free pack begins.
    private var nextRow = 0

    /// A pack that this process has locked.
    private struct Pack: ~Copyable {
        let file: FileDescriptor
        let row: Int
        let state: PackState
        /// The offset of the next record.
        var end: Int
    }

    init(_ index: PackIndex, _ files: PackFiles) {
        self.index = index
        self.files = files
    }

    /// Appends a record and returns the word that names it; nil if there is no free pack.
    ///
    /// One system call, `pwrite`, and about ten more when a new pack is begun. The record is in the page cache when this
    /// returns, so it survives the process, but not a power failure.
    mutating func append(
        _ value: Span<UInt8>,
        _ record: Record,
        for key: Digest,
        minute: UInt16
    ) throws(Errno) -> PackWord? {
        PackRecord.encode(value, record, for: key, into: &buffer)
        return try appendBuffer(for: key, minute: minute)
    }

    /// Appends a copy of a record, which keeps its checksum: a damaged record stays recognizable.
    mutating func append(copyOf bytes: [UInt8], for key: Digest, minute: UInt16) throws(Errno) -> PackWord? {
        buffer = bytes
        return try appendBuffer(for: key, minute: minute)
    }

    private mutating func appendBuffer(for key: Digest, minute: UInt16) throws(Errno) -> PackWord? {
        guard buffer.count <= PackLayout.packSize - PackLayout.unit else { throw .fileTooLarge }
        if (open?.end ?? PackLayout.packSize) + buffer.count > PackLayout.packSize { try beginPack() }
        guard let row = open?.row, let offset = open?.end, let sequence = open?.state.sequence else {
            return nil
        }
        // After a short write the next record starts at the same offset.
        guard try open?.file.write(buffer.span, at: offset) == buffer.count else { throw .noSpace }
        open?.end = PackLayout.end(ofRecord: buffer.count, at: offset)
        return PackWord(of: key, pack: row, sequence: sequence, offset: offset, minute: minute)
    }

    /// Ends the present pack and begins a free one, if there is one.
    private mutating func beginPack() throws(Errno) {
        end()
        for step in 0..<index.packCount {
            let row = (nextRow + step) % index.packCount
            let state = index.state(ofPack: row)
            guard state.use == .free, let file = try files.open(row) else { continue }
            let begun = PackState(.open, sequence: state.sequence + 1)
            // The lock comes first: a process that finds an open pack without a lock knows that its writer is dead.
            guard index.replace(state, by: begun, ofPack: row) else { continue }
            nextRow = row + 1
            open = Pack(file: file, row: row, state: begun, end: PackLayout.unit)
            return
        }
    }

    /// Ends the present pack; the file's lock ends with it.
    private mutating func end() {
        guard let pack = open.take() else { return }
        let full = PackState(.full, sequence: pack.state.sequence)
        // Fails only if another process has taken the pack for that of a dead one.
        _ = index.replace(pack.state, by: full, ofPack: pack.row)
    }

    deinit {
        guard let pack = open else { return }
        _ = index.replace(pack.state, by: PackState(.full, sequence: pack.state.sequence), ofPack: pack.row)
    }
}
