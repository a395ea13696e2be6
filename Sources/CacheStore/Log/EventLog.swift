// SPDX-License-Identifier: Apache-2.0

import Platform

/// A log of removals: which process removed which key, when and why.
///
/// It is two files in the cache directory, `events` and the older `events.1`, which take about ``limit`` bytes together. It
/// is optional: a store without a log makes no system call for it. Writing a batch costs five; a failure to write does not
/// prevent a removal. Each line is one removal:
///
/// ```
/// 1700000000000000000 4711 size ab12…                 (ns since 1970, process, cause, SHA-256 of the key)
/// 1700000000000000000 4711 removed cd34… user:1\x0a   (and the key, if it is known)
/// ```
///
/// A batch is one write to a file opened for appending, so batches of several processes do not mix. It begins with an empty
/// line, so half a line, left by a killed process or a full disk, spoils no other line. Half a key is not read as a whole
/// one, as the key must match the digest before it.
package struct EventLog: Sendable {
    private let directory: StoreDirectory
    /// The maximum size of both files together, in bytes, except for one batch of each process that writes at the same
    /// instant.
    package let limit: Int64

    /// 64 KiB: with less, the second file would hold hardly more than a batch.
    package static let smallestLimit: Int64 = 64 * 1024

    /// The size in bytes at which a batch is written; it is exceeded by one line at most.
    private static let batchSize = 16 * 1024

    /// Creates a log in `directory`; a limit smaller than ``smallestLimit`` is raised to that.
    package init(in directory: StoreDirectory, limit: Int64) {
        self.directory = directory
        self.limit = max(limit, Self.smallestLimit)
    }

    /// Appends removals by this process, with the present time.
    ///
    /// Five system calls for about 150 of them: `openat2`, `fstat` twice, `write`, `close`.
    package func append(_ removals: [LoggedKey], cause: LoggedRemoval.Cause) {
        append(removals.lazy.map { ($0, cause) })
    }

    /// Appends removals by this process, with the present time and a cause for each.
    func append(_ removals: some Sequence<(LoggedKey, LoggedRemoval.Cause)>) {
        let (now, process) = (Timestamp.now, CurrentProcess.identifier)
        var batch: [UInt8] = []
        for (key, cause) in removals {
            if batch.isEmpty { batch.append(UInt8(ascii: "\n")) }
            LoggedRemoval(time: now, process: process, cause: cause, key: key).append(to: &batch)
            if batch.count >= Self.batchSize { flush(&batch) }
        }
        if !batch.isEmpty { flush(&batch) }
    }

    private func flush(_ batch: inout [UInt8]) {
        // The removals are done: a full disk, or a deleted directory, only loses these lines.
        bestEffort { [batch] () throws(Errno) in try write(batch.span) }
        batch.removeAll(keepingCapacity: true)
    }

    private func write(_ batch: Span<UInt8>) throws(Errno) {
        for attempt in 0..<3 {
            let file = try directory.root.open(
                StoreLayout.events,
                [.writeOnly, .append, .create],
                mode: FileMode.file
            )
            let status = try file.status()
            // A process that can write the file can give it any length.
            let size = min(status.size, .max - Int64(batch.count)) + Int64(batch.count)
            if status.size == 0 || size <= limit / 2 { return try file.writeAll(batch) }
            if attempt < 2 {
                try rotate(file, status.identity)
            } else if size <= limit {
                // Other processes have interfered with each rotation.
                return try file.writeAll(batch)
            }
        }
    }

    /// Makes the full file the older one, which replaces the previous older file.
    ///
    /// A process renames a file only while it holds a lock on the very file that has the name. So two processes that find
    /// the same file full can't both rename: the later one, which opened the file before it was renamed, finds that it no
    /// longer has the name. So only a full file becomes the older one. A process that appends to a file that is renamed
    /// meanwhile appends to the older one. Lost are lines appended to a file that is rotated out twice between its opening
    /// and its writing, and, with each rotation, the previous older file.
    ///
    /// If a process is stopped with the lock, the others can't rotate, and then they write no more than the limit.
    func rotate(_ file: borrowing FileDescriptor, _ identity: FileStatus.Identity) throws(Errno) {
        guard try file.tryLock(.exclusive) else { return }
        if try directory.root.presentStatus(of: StoreLayout.events)?.identity != identity { return }
        try directory.root.rename(StoreLayout.events, to: directory.root, StoreLayout.olderEvents)
    }

    // MARK: Reading

    /// Runs `body` with each logged removal, the newest last; returns false if there is no log.
    ///
    /// Needs no lock; invalid lines are skipped. Memory: a chunk and a line.
    package static func forEach(
        in directory: StoreDirectory,
        _ body: (LoggedRemoval) -> Void
    ) throws(CacheError) -> Bool {
        var name = StoreLayout.events
        return try describing("read the event log", "\(directory.path)/\(name)") { () throws(Errno) in
            let open = { () throws(Errno) in try directory.root.open(name, .readOnly) }
            // The newer file first: if it is rotated in between, it is found again as the older one, and read once.
            let newer = try ifExists(open)
            let identity = try newer?.status().identity
            name = StoreLayout.olderEvents
            let hasOlder = try read(ifExists(open), unlessIt: identity, body)
            name = StoreLayout.events
            return try read(newer, body) || hasOlder
        }
    }

    /// Reads a file; returns false if it is missing.
    ///
    /// The `known` file is read elsewhere, and counts as read.
    private static func read(
        _ file: consuming FileDescriptor?,
        unlessIt known: FileStatus.Identity? = nil,
        _ body: (LoggedRemoval) -> Void
    ) throws(Errno) -> Bool {
        guard let file else { return false }
        if let known, try file.status().identity == known { return true }
        var line: [UInt8] = []
        // Holes have no lines, and may be as long as the file system permits.
        try file.forEachChunkOfData { chunk in
            for index in chunk.indices {
                if chunk[index] != UInt8(ascii: "\n") {
                    if line.count <= longestLine { line.append(chunk[index]) }
                    continue
                }
                if let event = LoggedRemoval(line) { body(event) }
                line.removeAll(keepingCapacity: true)
            }
        }
        return true
    }

    /// The maximum length of a line in bytes.
    ///
    /// A key of 1 KiB takes 4 KiB at most, if each byte is written as `\xff`.
    private static let longestLine = 8192
}
