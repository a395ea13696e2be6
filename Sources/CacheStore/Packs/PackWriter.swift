// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The pack to which this process appends records.
///
/// Used under a lock: one thread appends at a time. Not used in a forked child, because the pack and its lock belong to the
/// parent.
struct PackWriter: ~Copyable {
    private let index: PackIndex
    private let files: PackFiles
    private let owner = processGeneration
    /// The record being written, kept to save an allocation.
    private var buffer: [UInt8] = []
    private var current: Pack?
    /// The file of the current pack, which this process has locked.
    private var file: FileDescriptor?
    /// The row where the search for a free pack begins.
    private var nextRow = 0

    private struct Pack {
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
    /// One system call, `pwrite`, and six more when a new pack is started. The record is in the page cache when this
    /// returns, so it survives the process, but not a power failure.
    mutating func append(
        _ value: Span<UInt8>,
        _ record: Record,
        for key: Digest,
        minute: UInt16
    ) throws(Errno) -> PackWord? {
        PackRecord.encode(value, record, for: key, into: &buffer)
        // The record of an entry is longer than the terms: the value may have to be moved into files.
        let terms = buffer.count - value.count - PackRecord.headerSize
        guard terms <= Record.maximumSize - 128 else { throw .argumentListTooLong }
        return try appendBuffer(for: key, minute: minute)
    }

    /// Appends a copy of a record, which keeps its checksum: a damaged record stays recognizable.
    mutating func append(copyOf bytes: [UInt8], for key: Digest, minute: UInt16) throws(Errno) -> PackWord? {
        buffer = bytes
        return try appendBuffer(for: key, minute: minute)
    }

    private mutating func appendBuffer(for key: Digest, minute: UInt16) throws(Errno) -> PackWord? {
        guard buffer.count <= PackLayout.packSize - PackLayout.unit else { throw .fileTooLarge }
        if !hasRoom(buffer.count) { try beginPack() }
        guard let pack = current else { return nil }
        // After a short write the next record starts at the same offset.
        guard try file?.write(buffer.span, at: pack.end) == buffer.count else { throw .noSpace }
        current?.end = PackLayout.end(ofRecord: buffer.count, at: pack.end)
        return PackWord(
            of: key,
            pack: pack.row,
            sequence: pack.state.sequence,
            offset: pack.end,
            minute: minute
        )
    }

    /// Whether the record fits into the current pack, and no other process has taken over the pack, believing its writer
    /// dead.
    private func hasRoom(_ size: Int) -> Bool {
        guard let pack = current else { return false }
        return pack.end + size <= PackLayout.packSize && index.state(ofPack: pack.row) == pack.state
    }

    /// Ends the current pack and starts a free one, if there is one.
    ///
    /// Packs that have been used come first, because their blocks are allocated.
    ///
    /// - Throws: the error of a full disk only if no pack could be started.
    private mutating func beginPack() throws(Errno) {
        end()
        var failure: Errno?
        for isUsed in [true, false] {
            for step in 0..<index.packCount {
                let row = (nextRow + step) % index.packCount
                let state = index.state(ofPack: row)
                guard state.use == .free, (state.sequence > 0) == isUsed else { continue }
                do throws(Errno) {
                    if try begin(row, state) { return }
                } catch {
                    guard error.isDiskFull else { throw error }
                    failure = error
                    // No other new pack has room, either.
                    if !isUsed { throw error }
                }
            }
        }
        if let failure { throw failure }
    }

    /// Starts the pack in the given row; returns false if another process has started it, or if its file is missing.
    private mutating func begin(_ row: Int, _ state: PackState) throws(Errno) -> Bool {
        guard let opened = try files.open(row, creates: state.sequence == 0) else { return false }
        let begun = PackState(.open, sequence: state.sequence + 1)
        // The lock comes first: a process that finds an open pack without a lock knows that its writer is dead.
        guard index.replace(state, by: begun, ofPack: row) else { return false }
        nextRow = row + 1
        current = Pack(row: row, state: begun, end: PackLayout.unit)
        file = consume opened
        return true
    }

    /// Ends the current pack; the file's lock ends with it.
    private mutating func end() {
        markFull()
        current = nil
        file = nil
    }

    /// Fails only if another process has taken over the pack, believing its writer dead.
    private func markFull() {
        guard let pack = current else { return }
        let full = PackState(.full, sequence: pack.state.sequence)
        _ = index.replace(pack.state, by: full, ofPack: pack.row)
    }

    deinit {
        if processGeneration == owner { markFull() }
    }
}
