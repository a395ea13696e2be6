// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The file `outbox`: a journal of the keys whose changes must be sent to stores on other machines (``OutboxRecord``).
///
/// Each writer appends whole records, each with one write to a file opened for appending, so the records of several
/// processes do not mix and no process needs a lock. If a killed process or a full disk leaves a partial record, only
/// that record is lost: readers search for the next one (``OutboxRecord/all(in:)``).
///
/// The process that sends the changes, which holds the sender's lock, may replace the file with a shorter one
/// (``replace(by:readUpTo:)``). An appender that finds that its file no longer has the name `outbox` appends its record
/// again, to the new file. Records that were appended to the old file after the sender had read it, and before it was
/// replaced, are only in the old file for a while. The old file keeps the name `outbox.1` until the new file contains
/// them, and the first record of the new file states that both files have to be read. So no record is lost or missed,
/// whichever process is killed.
///
/// The random number in its first record identifies the file. The inode does not: a file that was read may have been
/// deleted, and another file may have its inode.
package final class OutboxFile: Sendable {
    /// The length in bytes from which on changes are no longer appended.
    ///
    /// The sender's own records are appended up to twice this length, which readers accept: without them the changes would
    /// be sent again and again, and the file would never become shorter.
    package static let longest: Int64 = 12 << 20

    private struct State: ~Copyable {
        var file: FileDescriptor?
        /// The identity of the file; while it is open, no other file has this inode.
        var identity: FileStatus.Identity?
        /// The size at the last check.
        var size: Int64 = 0
    }

    /// How many times an appender retries because its file was replaced.
    private static let mostAttempts = 100

    private let directory: StoreDirectory
    private let state = Locked(State())
    /// A structure, because a closure that is stored as a generic value is wrapped again at each access.
    private struct Listener {
        let body: @Sendable () -> Void
    }

    private let listener = Locked<Listener?>(nil)

    /// Creates the outbox; opens no file yet.
    init(in directory: StoreDirectory) {
        self.directory = directory
    }

    /// Calls `body` after each record that this process appends; nil to stop.
    package func onAppend(_ body: (@Sendable () -> Void)?) {
        let listening = body.map { Listener(body: $0) }
        listener.withLock { $0 = listening }
    }

    /// Creates the file, empty, unless it exists: it shows that the directory uses remote stores.
    func create() throws(Errno) {
        _ = try directory.root.open(StoreLayout.outbox, Self.opening, mode: FileMode.file)
    }

    /// A constant: constructing an option set of another module takes three allocations.
    private static let opening: OpenFlags = [.writeOnly, .append, .create]

    /// Appends a record.
    ///
    /// Two system calls, four more if the file was replaced.
    ///
    /// - Throws: errors of the file system; ``Errno/fileTooLarge`` if the file is full.
    package func append(_ record: OutboxRecord) throws(Errno) {
        let bytes = record.encoded()
        let longest = record.isOfSender ? 2 * Self.longest - Int64(bytes.count) : Self.longest
        for _ in 0..<Self.mostAttempts where try appendOnce(bytes, longest) {
            let told = listener.withLock { $0 }
            told?.body()
            return
        }
        // Another process replaces the file again and again.
        throw .timedOut
    }

    /// Appends to the file once, unless it has this length; returns false if the file no longer has the name `outbox`.
    private func appendOnce(_ bytes: [UInt8], _ longest: Int64) throws(Errno) -> Bool {
        try state.withLock { (state) throws(Errno) -> Bool in
            if state.file == nil {
                let file = try directory.root.open(StoreLayout.outbox, Self.opening, mode: FileMode.file)
                let status = try file.status()
                (state.identity, state.size) = (status.identity, status.size)
                state.file = consume file
            }
            guard let file = state.file.take() else { return false }
            if state.size >= longest {
                // A shorter file may have replaced this one.
                guard let size = try sizeOfNamed(state.identity) else { return false }
                if size >= longest { throw .fileTooLarge }
            }
            try file.writeAll(bytes.span)
            // The number of links does not show whether the file has the name: a backup may be another link to it.
            guard let size = try sizeOfNamed(state.identity) else { return false }
            state.size = size
            state.file = consume file
            return true
        }
    }

    /// Returns the length of the file `outbox` if it has this identity; otherwise nil.
    private func sizeOfNamed(_ identity: FileStatus.Identity?) throws(Errno) -> Int64? {
        guard let named = try directory.root.presentStatus(of: StoreLayout.outbox), named.identity == identity
        else { return nil }
        return named.size
    }

    // MARK: Reading

    /// The state of the file, which shows whether the file has changed: its inode, its length and its change time.
    package struct Mark: Sendable, Equatable {
        package let identity: FileStatus.Identity
        package let size: Int64
        package let changed: Timestamp

        init(_ status: FileStatus) {
            (identity, size, changed) = (status.identity, status.size, status.changed)
        }
    }

    /// A part of the file that was read.
    package struct Part: Sendable {
        /// The state of the file before it was read.
        package let mark: Mark
        /// The first record of the file, or the part of it that exists.
        package let beginning: [UInt8]
        /// The contents from the offset on.
        package let bytes: [UInt8]
    }

    /// Returns the state of the file; nil if it does not exist.
    ///
    /// One system call.
    package func mark() throws(Errno) -> Mark? {
        try directory.root.presentStatus(of: StoreLayout.outbox).map { Mark($0) }
    }

    /// Returns the file's contents from an offset on; nil if it does not exist.
    package func read(from offset: Int64) throws(Errno) -> Part? {
        try read(StoreLayout.outbox, from: offset)
    }

    /// Returns the records of the replaced file from this offset on; nil if it does not exist.
    package func readPredecessor(from offset: Int64) throws(Errno) -> [OutboxRecord]? {
        try read(StoreLayout.olderOutbox, from: offset).map { OutboxRecord.all(in: $0.bytes).records }
    }

    private func read(_ name: RelativePath, from offset: Int64) throws(Errno) -> Part? {
        try ifExists { () throws(Errno) -> Part in
            try Self.read(try directory.root.open(name, .readOnly), from: offset)
        }
    }

    private static func read(_ file: borrowing FileDescriptor, from offset: Int64) throws(Errno) -> Part {
        let status = try file.status()
        let count = max(0, min(status.size, 2 * longest) - offset)
        let bytes = try count == 0 ? [] : file.read(Int(count), at: Int(offset))
        let beginning =
            try offset == 0 ? Array(bytes.prefix(OutboxRecord.size)) : file.read(OutboxRecord.size, at: 0)
        return Part(mark: Mark(status), beginning: beginning, bytes: bytes)
    }

    // MARK: Sending

    /// Replaces the file that was read up to `offset` with these records, and carries over the records that were appended
    /// since.
    ///
    /// The caller holds the sender's lock, and has completed any earlier replacement (``carryOver()``). Does nothing if the
    /// file does not exist.
    package func replace(by records: [UInt8], readUpTo offset: Int64) throws(Errno) {
        try unlinkPredecessor()
        let before = try ifExists { () throws(Errno) in try directory.root.open(StoreLayout.outbox, .readOnly)
        }
        guard let before else { return }
        do throws(Errno) {
            let isThere = try ifExists { () throws(Errno) -> Bool in
                try directory.root.link(StoreLayout.outbox, as: StoreLayout.olderOutbox)
                return true
            }
            guard isThere == true else { return }
        } catch {
            // This file system has no links. If the process is killed before the records are carried over, they are lost.
            guard error.leavesCopy else { throw error }
        }
        let header = OutboxRecord(number: OutboxRecord.freshNumber(), .follows(upTo: offset))
        let bytes = header.encoded() + records
        let file = try TemporaryFile(in: directory, mode: FileMode.file)
        try file.file.writeAll(bytes.span)
        try file.rename(to: directory.root, StoreLayout.outbox)
        try carryOver { (offset) throws(Errno) in
            OutboxRecord.all(in: try Self.read(before, from: offset).bytes).records
        }
    }

    /// Appends the records of the replaced file that this file does not contain yet; does nothing if they were appended.
    ///
    /// The caller holds the sender's lock.
    package func carryOver() throws(Errno) {
        try carryOver { (offset) throws(Errno) in try readPredecessor(from: offset) ?? [] }
    }

    private func carryOver(
        _ lateRecords: (_ offset: Int64) throws(Errno) -> [OutboxRecord]
    ) throws(Errno) {
        guard let part = try read(from: 0) else { return }
        let records = OutboxRecord.all(in: part.bytes).records
        guard let header = records.first, case .follows(let offset) = header.work else { return }
        let mark = OutboxRecord(number: header.number, .carried)
        if !records.contains(mark) {
            // This finds all records that were appended before the rename; later appenders find the new file.
            let late = try lateRecords(offset)
            let bytes = OutboxRecord.net(late).flatMap { $0.encoded() } + mark.encoded()
            try directory.root.open(StoreLayout.outbox, Self.opening).writeAll(bytes.span)
        }
        try unlinkPredecessor()
    }

    private func unlinkPredecessor() throws(Errno) {
        _ = try ifExists { () throws(Errno) in try directory.root.unlink(StoreLayout.olderOutbox) }
    }
}

extension OutboxRecord {
    /// Returns these records without completed changes and without ``OutboxRecord/Work/follows(upTo:)`` and
    /// ``OutboxRecord/Work/carried``.
    ///
    /// The result can be appended after newer records.
    package static func net(_ records: [OutboxRecord]) -> [OutboxRecord] {
        let (begun, done) = (
            Set(records.filter { $0.work != .done }.map(\.identity)),
            Set(records.filter { $0.work == .done }.map(\.identity))
        )
        return records.filter { record in
            record.isAboutKey && !(record.work == .done ? begun : done).contains(record.identity)
        }
    }

    /// Returns the records in the bytes of a journal, and the number of bytes read, which excludes a partial record at
    /// the end.
    ///
    /// Damaged bytes are skipped.
    package static func all(in bytes: [UInt8]) -> (records: [OutboxRecord], count: Int) {
        var records: [OutboxRecord] = []
        var start = 0
        let span = bytes.span
        records.reserveCapacity(bytes.count / size)
        while bytes.count - start >= size {
            if let record = OutboxRecord(decoding: span, at: start) {
                records.append(record)
                start += size
            } else {
                start += 1
            }
        }
        return (records, start)
    }
}
