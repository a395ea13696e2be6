// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension SharedCache {
    /// What `diskcache doctor` reports on.
    ///
    /// Some 800 system calls, half a millisecond, whatever the cache holds: of the entries some 100 are looked at, of
    /// the objects none.
    ///
    /// Dates one file of the cache anew (`locks/format`), to read the file system's clock.
    package func facts() throws(CacheError) -> DirectoryFacts {
        try withStore { (store, now) throws(StoreError) in
            let directory = store.directory
            let isCurrent = try directory.isCurrent()
            do throws(Errno) {
                let status = try directory.root.descriptor.status()
                var permissions = status.permissions
                for part in [StoreLayout.objects, StoreLayout.entries, StoreLayout.locks] {
                    // A link has permissions that mean nothing.
                    let status = try ifExists { () throws(Errno) in try directory.root.status(of: part) }
                    if let status, status.kind == .directory { permissions |= status.permissions }
                }
                var facts = DirectoryFacts(
                    isWritable: directory.isWritable,
                    hasAttributes: directory.capabilities.attributes == .writable,
                    hasUnnamedFiles: directory.capabilities.unnamedFiles,
                    hasLocks: Self.hasLocks(directory.root),
                    control: store.control.condition,
                    isCurrent: isCurrent,
                    fileSystem: try directory.root.descriptor.fileSystemKind(),
                    space: try directory.root.descriptor.fileSystemSpace(),
                    owner: status.owner,
                    user: CurrentProcess.effectiveUser,
                    permissions: permissions,
                    clockSkew: directory.isWritable ? Self.clockSkew(directory.root) : nil
                )
                facts.isAssumedLocal = directory.isAssumedLocal
                facts.parts = try PartFacts(of: directory, owner: status.owner)
                facts.parts.sample(StoreScan(of: store.parts))
                facts.kernel = .present
                facts.collections = CollectionFacts(of: store)
                // Shards that are to come are reckoned with, as by the limits.
                facts.parts.overhead = max(facts.parts.overhead, store.overhead)
                facts.usedBytes = store.usage.flatMap {
                    $0.isCounted ? max(0, $0.bytes) + facts.parts.overhead : nil
                }
                facts.configuration = ConfigurationFacts(of: store)
                facts.evictions = CacheTotals(of: store).map { EvictionPressure($0.activity) }
                if facts.fileSystem.isVolatile { facts.memory = .present }
                return facts
            } catch {
                throw StoreError(.inputOutput, "examine", path: directory.path, errno: error)
            }
        }
    }

    /// Made with the cache, and there as long as it is.
    private static let probe: RelativePath = "locks/format"

    /// Whether flock works, nil where the file can't be opened: then other findings say why.
    private static func hasLocks(_ root: borrowing Directory) -> Bool? {
        let file: FileDescriptor
        do throws(Errno) {
            file = try root.open(probe, .readOnly)
        } catch {
            return nil
        }
        do throws(Errno) {
            // Held by another it works as well. Closing the file gives it back.
            _ = try file.tryLock(.shared)
            return true
        } catch {
            return false
        }
    }

    /// The file system's present less the clock's, nil where the file can't be dated: then other findings
    /// say why.
    private static func clockSkew(_ root: borrowing Directory) -> Duration? {
        do throws(Errno) {
            try root.touch(probe)
            return try root.status(of: probe).changed - .now
        } catch {
            return nil
        }
    }
}

extension ConfigurationFacts {
    fileprivate init(of store: Store) {
        self.init()
        store.followConfiguration()
        let configuration = store.configuration
        problem = store.configurationFailure?.detail ?? store.configurationFailure?.errno?.description
        isThere = problem != nil || configuration != DirectoryConfiguration()
        unknownKeys = configuration.unknownKeys
        maximumSize = configuration.limits.maximumSize
        minimumFree = configuration.limits.minimumFree.map { FreeSpace($0) }
    }
}

extension PartFacts {
    /// Looks at the directories down to the shards, at the files beside them, and at the locks.
    init(of directory: StoreDirectory, owner: UInt32) throws(Errno) {
        self.init()
        let root = try directory.root.names()
        var names = root
        for part in root where ["entries", "objects", "locks", "tmp"].contains(part) {
            // One that can't be read is told of by its owner.
            let inside = try ifAllowed { () throws(Errno) in
                try directory.root.openDirectory(RelativePath(part)).names()
            }
            names += (inside ?? []).map { "\(part)/\($0)" }
        }
        var newest = Timestamp.distantPast
        for name in names where name.utf8.count <= RelativePath.capacity {
            let status = try ifExists { () throws(Errno) in try directory.root.status(of: RelativePath(name))
            }
            guard let status else { continue }
            if status.owner != owner { foreign.append(name) }
            if let kind = Self.kind(of: name), status.kind != kind { misplaced.append(name) }
            newest = max(newest, status.changed)
            overhead += status.allocatedSize
        }
        overhead += try directory.root.descriptor.status().allocatedSize
        foreign.sort()
        misplaced.sort()
        self.newest = newest - .now
    }

    /// Entries that are enough to tell a copy without records from puts that were killed.
    private static let sampleSize = 100

    /// Looks at the first entries that are found.
    fileprivate mutating func sample(_ scan: StoreScan) {
        for shard in 0..<StoreLayout.shardCount where sampledEntries < Self.sampleSize {
            do throws(StoreError) {
                for key in try scan.digests(.entries, shard: shard).digests.prefix(Self.sampleSize) {
                    guard let (stored, _) = try scan.entry(key) else { continue }
                    sampledEntries += 1
                    if stored.bytes.isEmpty { recordlessEntries += 1 }
                }
            } catch {
                // What can't be read is told of by its owner and by `verify`.
                continue
            }
        }
    }
}

extension PartFacts {
    /// What kind of file the cache makes under that name; nil: none.
    private static func kind(of name: String) -> FileStatus.Kind? {
        let parts = name.split(separator: "/")
        if parts.count == 2 { return ["locks", "tmp"].contains(parts[0]) ? .regular : .directory }
        if StoreLayout.partNames.contains(name) { return .directory }
        return StoreLayout.ownNames.contains(name) ? .regular : nil
    }
}

/// nil where it is forbidden, or gone by now.
private func ifAllowed<Value>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        switch error {
        case .accessDenied, .noEntry, .notDirectory, .tooManyLinks: return nil
        default: throw error
        }
    }
}

extension KernelFacts {
    fileprivate static var present: KernelFacts {
        var facts = KernelFacts()
        facts.hasAttributeCalls = KernelSupport.attributeCallsAt
        facts.hasEmptyPathLinks = KernelSupport.emptyPathLinks
        facts.hasHashInstructions = SHA256.isAccelerated && CRC32C.isAccelerated
        return facts
    }
}

extension MemoryFacts {
    fileprivate static var present: MemoryFacts? {
        ProcFiles.availableMemory().map { MemoryFacts(available: $0.memory, swap: $0.swap) }
    }
}

extension CollectionFacts {
    /// What the janitor lock's file says, and whether somebody holds it.
    fileprivate init(of store: Store) {
        self.init()
        let now = Timestamp.now
        let record = store.lastSweep()
        sinceLast = record?.lastFull.map { now - $0.began }
        age = SharedCache.birth(store.directory.root).map { now - $0 } ?? .zero
        guard let record, record.isUnfinished else { return }
        wasCutOff = true
        guard record.ended == nil, SharedCache.isHeld(StoreLayout.janitorLock, store.directory.root) else {
            return
        }
        let process = store.visibleSweeper(record)
        holder = Holder(
            process: process,
            duration: now - record.began,
            isStopped: process.flatMap { ProcFiles.isStopped($0) } ?? false
        )
    }
}

extension SharedCache {
    /// When the cache was made: its `format` file is written once.
    fileprivate static func birth(_ root: borrowing Directory) -> Timestamp? {
        do throws(Errno) {
            return try root.status(of: "format").modified
        } catch {
            return nil
        }
    }

    /// Whether another process holds this lock now; only asked where it is likely, as to ask is to hold it for a moment.
    fileprivate static func isHeld(_ lock: RelativePath, _ root: borrowing Directory) -> Bool {
        do throws(Errno) {
            let file = try root.openDirectory(StoreLayout.locks).open(lock, .readOnly)
            return try !file.tryLock(.shared)
        } catch {
            return false
        }
    }
}
