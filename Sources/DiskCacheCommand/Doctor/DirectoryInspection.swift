// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// The facts about a cache directory, which `doctor` gathers once.
///
/// ``findings`` depends only on these facts. The default values describe a healthy directory.
struct DirectoryInspection {
    /// The process that is collecting.
    struct Collector {
        /// The process ID; nil if this process can't see the collecting process, which may run in another container.
        var process: Int32?
        /// The time since its collection began.
        var duration: Duration
        /// Whether a signal or a debugger has stopped the collecting process, as far as this process can tell.
        var isStopped: Bool
    }

    // MARK: The directory

    /// Whether the path still leads to the opened directory.
    var isCurrent = true
    /// Whether this process may write to the directory.
    var isWritable = true
    var owner: UInt32
    /// The effective user of this process.
    var user = CurrentProcess.effectiveUser
    /// The permission bits of the directory and its parts, combined.
    var permissions: UInt32 = 0
    /// Names of subdirectories and files that don't belong to the directory's owner.
    var foreignFiles: [String] = []
    /// Names of subdirectories and files of the wrong kind: a pipe, a link, a directory in place of a file.
    var misplacedFiles: [String] = []
    /// The space on disk, in bytes, of everything but entries and objects.
    var overhead: Int64 = 0
    /// The number of entries in the sample; ``entriesWithoutRecord`` counts the entries among them that lack a record.
    var sampledEntries = 0
    var entriesWithoutRecord = 0
    /// Whether the file with removal rules is usable: not damaged, missing or unreadable.
    var rulesAreKnown = true
    /// The layout version of a foreign control file that opening the cache replaced.
    var replacedControlVersion: UInt64?

    // MARK: The file system and the kernel

    var fileSystem: FileSystemKind
    var space: FileSystemSpace
    /// Whether `config.json` declares the file system local although it seems to be remote.
    var isAssumedLocal = false
    /// Whether files can have extended attributes.
    var hasAttributes = true
    /// Whether unnamed files (O_TMPFILE) can be created and given a name later.
    var hasUnnamedFiles = true
    /// Whether flock works; nil if there was no file to test it on.
    var hasLocks: Bool? = true
    var control = ControlCondition.shared
    /// Whether the directory has a regular file as its control file, usable or not.
    var hasControlFile = true
    /// Whether getxattrat(2) is available.
    var hasAttributeCalls = true
    /// Whether linkat(2) by file descriptor is available.
    var hasEmptyPathLinks = true
    /// Whether the processor has instructions for SHA-256 and CRC-32C.
    var hasHashInstructions = true
    /// Memory available without swapping, and free swap, in bytes; nil unless the file system is in memory.
    var memory: (available: Int64, swap: Int64)?

    // MARK: Time

    /// How far the file system's clock is ahead of the system's clock; nil if the directory is not writable.
    var clockSkew: Duration?
    /// How far the latest change time of any subdirectory or file is ahead of the system's clock; negative if it is past.
    var newestChange = Duration.zero
    /// How far the latest creation time of any value is ahead of the system's clock; negative if it is past.
    var newestValue = Duration.zero
    var collector: Collector?
    /// Whether the last collection was interrupted.
    var wasInterrupted = false
    /// The time since the last complete collection began; nil if there was none.
    var sinceCollection: Duration?
    /// The time since the cache was created.
    var age = Duration.zero

    // MARK: Limits

    var configuration = DirectoryConfiguration()
    /// Why `config.json` can't be used; nil if it is usable or missing.
    var configurationProblem: String?
    /// The cache's size on disk, as its processes have counted it; nil if unknown.
    var usedBytes: Int64?
    /// The activity of its processes; nil if unknown.
    var activity: CacheActivity?
}

extension DirectoryInspection {
    /// Gathers the facts about an open cache.
    ///
    /// Makes about 800 system calls in half a millisecond, whatever the cache's size: reads about 100 entries and no
    /// objects. Sets the times of one file of the cache (`locks/format`), in order to read the file system's clock.
    init(of cache: SharedCache) throws(CacheError) {
        let totals = try cache.directory.totals()
        self = try cache.withStore { (store, _) throws(CacheError) in
            let isCurrent = try store.directory.isCurrent()
            var facts = try describing("examine", store.directory.path) { () throws(Errno) in
                try DirectoryInspection(of: store.directory)
            }
            facts.isCurrent = isCurrent
            facts.control = store.control.condition
            // Missing shards count as existing, as they do for the limits.
            facts.overhead = max(facts.overhead, store.overhead)
            facts.rulesAreKnown = try store.control.rulesAreKnown()
            facts.sampleEntries(of: store)
            facts.newestValue = store.latestCreated.map { $0 - .now } ?? .zero
            facts.lookAtCollections(of: store)
            store.followConfiguration()
            facts.configuration = store.configuration
            facts.configurationProblem = store.configurationFailure?.reason
            return facts
        }
        usedBytes = totals.flatMap { $0.usage.isCounted ? $0.usage.bytes + overhead : nil }
        activity = totals?.activity
    }

    private init(of directory: StoreDirectory) throws(Errno) {
        self.init(
            owner: try directory.root.descriptor.status().owner,
            fileSystem: try directory.root.descriptor.fileSystem().kind,
            space: try directory.root.descriptor.fileSystemSpace()
        )
        hasControlFile = try directory.root.presentStatus(of: StoreLayout.control)?.kind == .regular
        // This file is written once, when the cache is created. If it is missing, the age is unknown, and 0 is assumed.
        age = try directory.root.presentStatus(of: StoreLayout.format).map { .now - $0.modified } ?? .zero
        isWritable = directory.isWritable
        hasAttributes = directory.capabilities.attributes == .writable
        hasUnnamedFiles = directory.capabilities.unnamedFiles
        hasLocks = Self.tryLock(Self.probe, in: directory.root).map { $0 != .failed }
        isAssumedLocal = directory.fileSystem.isAssumedLocal
        // Nil if the times of the file can't be set, which other checks explain.
        clockSkew = try? isWritable ? Self.clockSkew(directory.root) : nil
        hasAttributeCalls = KernelSupport.attributeCallsAt
        hasEmptyPathLinks = KernelSupport.emptyPathLinks
        hasHashInstructions = SHA256.isAccelerated && CRC32C.isAccelerated
        if fileSystem.isVolatile {
            memory = ProcFiles.availableMemory().map { (available: $0.memory, swap: $0.swap) }
        }
        examine(try directory.ownFiles())
    }

    /// Examines all files of the cache except entries and objects.
    private mutating func examine(_ files: [(name: String, status: FileStatus)]) {
        var newest = Timestamp.distantPast
        for (name, status) in files {
            if status.owner != owner { foreignFiles.append(name) }
            if let kind = Self.kind(of: name), status.kind != kind { misplacedFiles.append(name) }
            // The permissions of a symbolic link have no effect.
            if [".", "objects", "entries", "locks"].contains(name), status.kind == .directory {
                permissions |= status.permissions
            }
            newest = max(newest, status.changed)
            overhead += status.allocatedSize
        }
        foreignFiles.sort()
        misplacedFiles.sort()
        newestChange = newest - .now
    }

    /// Returns the kind of file that the cache creates under a name; nil if it creates none of that name.
    private static func kind(of name: String) -> FileStatus.Kind? {
        let parts = name.split(separator: "/")
        if parts.count == 2 { return ["locks", "tmp"].contains(parts[0]) ? .regular : .directory }
        if StoreLayout.partNames.contains(name) { return .directory }
        return StoreLayout.ownNames.contains(name) ? .regular : nil
    }

    /// The sample size, large enough to distinguish a copy that lost all records from a few killed puts.
    private static let sampleSize = 100

    /// Examines the first entries of the cache.
    private mutating func sampleEntries(of store: Store) {
        for shard in 0..<StoreLayout.shardCount where sampledEntries < Self.sampleSize {
            do throws(CacheError) {
                for key in try store.digests(.entries, shard: shard).digests.prefix(Self.sampleSize) {
                    guard let (stored, _) = try store.entry(key) else { continue }
                    sampledEntries += 1
                    if stored.bytes.isEmpty { entriesWithoutRecord += 1 }
                }
            } catch {
                // The check of owners, and `verify`, report unreadable entries.
                continue
            }
        }
    }

    /// Reads the record of the last collection, and checks whether one is running.
    private mutating func lookAtCollections(of store: Store) {
        let now = Timestamp.now
        let last = SweepRecord.last(in: store.directory)
        sinceCollection = last?.lastFull.map { now - $0.began }
        guard let last, last.isUnfinished else { return }
        wasInterrupted = true
        // The check takes the lock for a moment, so it is made only if the lock is probably held.
        guard last.ended == nil, Self.tryLock("locks/janitor", in: store.directory.root) == .held
        else { return }
        let process = store.visibleSweeper(last)
        collector = Collector(
            process: process,
            duration: now - last.began,
            isStopped: process.flatMap { ProcFiles.isStopped($0) } ?? false
        )
    }

    // MARK: Locks and clocks

    /// A lock file that always exists in a cache.
    private static let probe: RelativePath = "locks/format"

    private enum LockOutcome {
        case free, held, failed
    }

    /// Takes a lock for a moment; returns nil if the lock file can't be opened, which other checks explain.
    private static func tryLock(_ path: RelativePath, in root: borrowing Directory) -> LockOutcome? {
        guard let file = try? root.open(path, .readOnly) else { return nil }
        // Closing the file releases the lock.
        return (try? file.tryLock(.shared)).map { $0 ? .free : .held } ?? .failed
    }

    /// Returns how far the file system's clock is ahead of the system's clock.
    private static func clockSkew(_ root: borrowing Directory) throws(Errno) -> Duration {
        try root.touch(probe)
        return try root.status(of: probe).changed - .now
    }
}
