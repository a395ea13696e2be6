// SPDX-License-Identifier: Apache-2.0

import Platform

/// A log of removals: which process removed which key, when and why.
///
/// The log consists of two files in the cache directory, `events` and the older `events.1`, which take about ``limit``
/// bytes together. It is optional: a store without a log makes no system call for it. Writing a batch costs five system
/// calls; a failure to write does not prevent a removal. Each line is one removal:
///
/// ```
/// 1700000000000000000 4711 size ab12…                 (ns since 1970, process, cause, SHA-256 of the key)
/// 1700000000000000000 4711 removed cd34… user:1\x0a   (and the key, if it is known)
/// ```
///
/// A batch is one write to a file opened for appending, so batches of several processes do not mix. A batch begins with
/// an empty line, so a partial line, left by a killed process or a full disk, damages no other line. A partial key is
/// never read as a whole one, because a key must match the digest before it.
package struct EventLog: Sendable {
    private let directory: StoreDirectory
    /// The maximum size of both files together, in bytes; each process that writes at the same instant may exceed it by a
    /// batch.
    package let limit: Int64

    /// The smallest limit, 64 KiB: with less, each file would contain hardly more than a batch.
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
    /// Five system calls for about 150 removals: `openat2`, `fstat` twice, `write`, `close`.
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
        // The keys are already removed: if the disk is full or the directory was deleted, only these lines are lost.
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

    /// Renames the full file `events` to `events.1`, which replaces the previous older file.
    ///
    /// A process renames a file only while it holds the file's lock and the file still has the name `events`. So two
    /// processes that find the same file full can't both rename a file: the later one finds that the file that it has
    /// opened no longer has the name. Therefore only a full file becomes the older one. If a file is renamed while a
    /// process appends to it, the lines are appended to the older file. Each rotation deletes the previous older file. If
    /// a file is rotated twice between a process's opening and writing it, the lines that the process appends are lost,
    /// too.
    ///
    /// If a process is stopped while it holds the lock, the others can't rotate; they then write only up to the limit.
    func rotate(_ file: borrowing FileDescriptor, _ identity: FileStatus.Identity) throws(Errno) {
        guard try file.tryLock(.exclusive) else { return }
        if try directory.root.presentStatus(of: StoreLayout.events)?.identity != identity { return }
        try directory.root.rename(StoreLayout.events, to: directory.root, StoreLayout.olderEvents)
    }

    // MARK: Reading

    /// Runs `body` with each logged removal, the newest last; returns false if there is no log.
    ///
    /// It needs no lock and skips invalid lines. Memory: one chunk and one line.
    package static func forEach(
        in directory: StoreDirectory,
        _ body: (LoggedRemoval) -> Void
    ) throws(CacheError) -> Bool {
        var name = StoreLayout.events
        return try describing("read the event log", "\(directory.path)/\(name)") { () throws(Errno) in
            let open = { () throws(Errno) in try directory.root.open(name, .readOnly) }
            // Open the newer file first: if it is rotated before the older one is opened, it is found twice, and read
            // once.
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
    /// The caller reads the `known` file itself: it is skipped here, and the result is true.
    private static func read(
        _ file: consuming FileDescriptor?,
        unlessIt known: FileStatus.Identity? = nil,
        _ body: (LoggedRemoval) -> Void
    ) throws(Errno) -> Bool {
        guard let file else { return false }
        if let known, try file.status().identity == known { return true }
        var line: [UInt8] = []
        // Holes contain no lines, and may be as long as the file system permits.
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
