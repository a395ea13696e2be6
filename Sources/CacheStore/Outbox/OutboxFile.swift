// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The file `outbox`: a journal of the keys that stores on other machines have to be told of
/// (``OutboxRecord``).
///
/// Each writer appends whole records, each by one write to a file opened for appending, so those of several
/// processes do not mix and nobody needs a lock. What a killed process or a full disk has left of one spoils
/// that one alone: readers look for the next (``OutboxRecord/all(in:)``). Who alone sends, under a lock of
/// its own, may put a shorter file in its place: an appender who finds that its file has lost its name
/// appends once more, and what was appended before is taken over after the renaming, so nothing gets lost.
package final class OutboxFile: Sendable {
    /// Bytes; what does not fit is not noted.
    ///
    /// 64 Ki records and as many that say that they are done.
    package static let longest: Int64 = 12 << 20

    private struct State: ~Copyable {
        var file: FileDescriptor?
        /// As of the last look.
        var size: Int64 = 0
    }

    private let directory: StoreDirectory
    private let state = Locked(State())
    /// In a structure: a function that is a generic value itself is wrapped anew each time it is looked at.
    private struct Listener {
        let body: @Sendable () -> Void
    }

    private let listener = Locked<Listener?>(nil)

    /// Opens nothing yet.
    init(in directory: StoreDirectory) {
        self.directory = directory
    }

    /// Calls `body` after each record that this process appends; nil: nothing.
    package func onAppend(_ body: (@Sendable () -> Void)?) {
        let listening = body.map { Listener(body: $0) }
        listener.withLock { $0 = listening }
    }

    /// Made once: putting an option set of another module together takes three allocations.
    private static let opening: OpenFlags = [.writeOnly, .append, .create]

    /// Appends a record.
    ///
    /// Two system calls, four more where the file is another one than before.
    ///
    /// - Throws: what the file system says; ``Errno/fileTooLarge`` where it is full.
    package func append(_ record: OutboxRecord) throws(Errno) {
        let bytes = record.encoded()
        while try !appendOnce(bytes) {}
        let told = listener.withLock { $0 }
        told?.body()
    }

    /// False: the file has lost its name.
    private func appendOnce(_ bytes: [UInt8]) throws(Errno) -> Bool {
        try state.withLock { (state) throws(Errno) -> Bool in
            if state.file == nil {
                let file = try directory.root.open(StoreLayout.outbox, Self.opening, mode: FileMode.file)
                state.size = try file.status().size
                state.file = consume file
            }
            guard let file = state.file.take() else { return false }
            if state.size >= Self.longest {
                // Perhaps it is full no more, or another one has its place.
                state.size = try file.status().size
                let isNamed = try file.status().linkCount > 0
                if isNamed, state.size >= Self.longest { throw .fileTooLarge }
            }
            try file.writeAll(bytes.span)
            let status = try file.status()
            state.size = status.size
            guard status.linkCount > 0 else { return false }
            state.file = consume file
            return true
        }
    }

    // MARK: Reading

    /// Which file there is, and how long it is; nil: there is none.
    ///
    /// One system call.
    package func mark() throws(Errno) -> (identity: FileStatus.Identity, size: Int64)? {
        guard let status = try directory.root.presentStatus(of: StoreLayout.outbox) else { return nil }
        return (status.identity, status.size)
    }

    /// What it has from an offset on; nil: there is no file.
    package func read(from offset: Int64) throws(Errno) -> (identity: FileStatus.Identity, bytes: [UInt8])? {
        try ifExists { () throws(Errno) -> (identity: FileStatus.Identity, bytes: [UInt8]) in
            let file = try directory.root.open(StoreLayout.outbox, .readOnly)
            let status = try file.status()
            let count = max(0, min(status.size, 2 * Self.longest) - offset)
            return try (status.identity, count == 0 ? [] : file.read(Int(count), at: Int(offset)))
        }
    }

    // MARK: Sending

    /// Puts a file with these records in the place of the one that was read up to `offset`; what was appended
    /// to that one since is appended to it.
    ///
    /// Whoever calls it is the only one who sends.
    package func replace(by records: [UInt8], readUpTo offset: Int64) throws(Errno) {
        var opened = try ifExists { () throws(Errno) -> FileDescriptor in
            try directory.root.open(StoreLayout.outbox, .readOnly)
        }
        let file = try TemporaryFile(in: directory, mode: FileMode.file)
        try file.file.writeAll(records.span)
        try file.rename(to: directory.root, StoreLayout.outbox)
        guard let old = opened.take() else { return }
        // Whoever has appended before the renaming is found here; whoever appends later finds the other file.
        let rest = try max(0, old.status().size - offset)
        if rest > 0 {
            let late = try old.read(Int(rest), at: Int(offset))
            try directory.root.open(StoreLayout.outbox, Self.opening).writeAll(late.span)
        }
    }
}

extension OutboxRecord {
    /// The records in bytes of a journal, and how many bytes were read: what may be the beginning of another
    /// is left.
    package static func all(in bytes: [UInt8]) -> (records: [OutboxRecord], count: Int) {
        var records: [OutboxRecord] = []
        var start = 0
        while bytes.count - start >= size {
            if bytes[start] == UInt8(ascii: "o"),
                let record = OutboxRecord(decoding: Array(bytes[start..<start + size]))
            {
                records.append(record)
                start += size
            } else {
                start += 1
            }
        }
        return (records, start)
    }
}
