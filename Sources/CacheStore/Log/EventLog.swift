// SPDX-License-Identifier: Apache-2.0

import Platform

/// Which process removed which key, when and why: two files in the cache directory, `events` and the older
/// `events.1`, which take about ``limit`` bytes together.
///
/// Optional: a store without one makes no system call for it. To write costs five for a batch; whatever keeps it
/// from being written keeps no key from being removed. Each line is one removal:
///
/// ```
/// 1700000000000000000 4711 size ab12…                 (ns since 1970, process, cause, SHA-256 of the key)
/// 1700000000000000000 4711 removed cd34… user:1\x0a   (and the key, where it is known)
/// ```
///
/// A batch is one write to a file opened for appending, so those of several processes do not mix, and begins with
/// an empty line: half a line, left by a process that was killed or a disk that was full, spoils no other.
/// No half line passes for a whole one, as the key must have the digest before it.
package struct EventLog: Sendable {
    private let directory: StoreDirectory
    /// Bytes of both files together, but for one batch of each process that writes at the same instant.
    package let limit: Int64

    /// 64 KiB: of less the second file would hold hardly more than a batch.
    package static let smallestLimit: Int64 = 64 * 1024

    /// Bytes of a batch, at most but for one line.
    private static let batchSize = 16 * 1024

    /// A log in `directory`; a smaller limit than ``smallestLimit`` counts as that.
    package init(in directory: StoreDirectory, limit: Int64) {
        self.directory = directory
        self.limit = max(limit, Self.smallestLimit)
    }

    /// Adds removals of now by this process.
    ///
    /// Five system calls for about 150 of them: `openat2`, `fstat` twice, `write`, `close`.
    package func append(_ removals: [LoggedKey], cause: LoggedRemoval.Cause) {
        append(removals.lazy.map { ($0, cause) })
    }

    /// Adds removals of now by this process, each for a cause of its own.
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
        // What was removed is removed: a full disk, or a directory that went away, costs these lines.
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
            // Whoever can write the file can make it as long as a file can be.
            let size = min(status.size, .max - Int64(batch.count)) + Int64(batch.count)
            if status.size == 0 || size <= limit / 2 { return try file.writeAll(batch) }
            if attempt < 2 {
                try rotate(file, status.identity)
            } else if size <= limit {
                // Somebody else has been at it all the while.
                return try file.writeAll(batch)
            }
        }
    }

    /// Makes the full file the older one, in place of that.
    ///
    /// Whoever renames holds a lock on the very file that has the name: two that find the same file full can't both
    /// rename, and the later one, who has opened it before it was renamed, finds that it has the name no more. So
    /// no file takes the older one's place that is not full. Who appends to a file that is renamed meanwhile
    /// appends to the older one; lost is what is appended to a file that two rotations pass over between
    /// its opening and its writing, and with each rotation what was the older one.
    ///
    /// Who is stopped with the lock keeps the others from rotating, and then they write no more than the limit.
    func rotate(_ file: borrowing FileDescriptor, _ identity: FileStatus.Identity) throws(Errno) {
        guard try file.tryLock(.exclusive) else { return }
        if try directory.root.presentStatus(of: StoreLayout.events)?.identity != identity { return }
        try directory.root.rename(StoreLayout.events, to: directory.root, StoreLayout.olderEvents)
    }

    // MARK: Reading

    /// Runs `body` with each removal that is logged, the newest last; false: there is no log.
    ///
    /// Needs no lock; lines that are none are passed over. Memory: a chunk and a line.
    package static func forEach(
        in directory: StoreDirectory,
        _ body: (LoggedRemoval) -> Void
    ) throws(CacheError) -> Bool {
        var name = StoreLayout.events
        return try describing("read the event log", "\(directory.path)/\(name)") { () throws(Errno) in
            let open = { () throws(Errno) in try directory.root.open(name, .readOnly) }
            // The newer one first: rotated in between, it is found again as the older one, and read once.
            let newer = try ifExists(open)
            let identity = try newer?.status().identity
            name = StoreLayout.olderEvents
            let hasOlder = try read(ifExists(open), unlessIt: identity, body)
            name = StoreLayout.events
            return try read(newer, body) || hasOlder
        }
    }

    /// False where there is no file; one that was read before counts as read.
    private static func read(
        _ file: consuming FileDescriptor?,
        unlessIt known: FileStatus.Identity? = nil,
        _ body: (LoggedRemoval) -> Void
    ) throws(Errno) -> Bool {
        guard let file else { return false }
        if let known, try file.status().identity == known { return true }
        var line: [UInt8] = []
        // Holes have no lines, and may be as long as the file system lets a file be.
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

    /// Bytes: what is longer is no line.
    ///
    /// A key of 1 KiB takes 4 KiB at most where each byte is written as `\xff`.
    private static let longestLine = 8192
}
