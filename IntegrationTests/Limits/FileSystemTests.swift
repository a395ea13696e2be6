// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// Tests of file systems that are full, read-only, without inodes or without extended attributes.
@Suite(.enabled(if: Mount.isAllowed, "mounting a file system needs root"), .takesTurns)
struct FileSystemTests {
    private func code(_ body: () throws -> Void) -> CacheError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    /// Puts values until a put fails, and returns the number of stored values and the error.
    private func fill(_ cache: SharedCache, size: Int) -> (stored: Int, code: CacheError.Code?) {
        for index in 0..<1000 {
            let failure = code {
                try cache.put(
                    Data(SeededGenerator.bytes(size, seed: UInt64(index))),
                    forKey: "key \(index)"
                )
            }
            if let failure { return (index, failure) }
        }
        return (1000, nil)
    }

    @Test(arguments: [CacheConfiguration.MetadataForm.automatic, .sidecar])
    func `on a full file system puts fail with noSpace, and stored values stay readable`(
        form: CacheConfiguration.MetadataForm
    ) throws {
        let mount = try Mount("tmpfs", options: "size=4m")
        var configuration = CacheConfiguration()
        configuration.metadataForm = form
        let cache = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        let (stored, code) = fill(cache, size: 50_000)
        #expect(code == .noSpace)
        #expect(stored > 5)
        for index in 0..<stored {
            let expected = Data(SeededGenerator.bytes(50_000, seed: UInt64(index)))
            #expect(try cache.get(forKey: "key \(index)")?.value == expected)
        }
        // On a full disk a process can still open the cache, collect and store again.
        let other = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        let own = try #require(try other.directory.totals()).usage.overheadBytes
        let left = try other.directory.collect(CollectionOptions(maximumSize: ByteCount(own + 500 * 1024)))
        #expect(left.objects.count > 0)
        try other.put("fits", forKey: "small")
        #expect(try other.get(forKey: "small")?.value == Data("fits".utf8))
        #expect(try other.directory.verify().isClean)
    }

    /// Ways to store a value, each of which meets a full disk at another step.
    enum Way: CaseIterable {
        case bytes, sidecar, hasty, file, pipe, behind, computed, updated
    }

    /// The resource that a disk runs out of, well before the last of the 150 or 300 values.
    enum Lack: CaseIterable {
        case blocks, inodes

        var options: String { self == .blocks ? "size=8m" : "size=64m,nr_inodes=420" }
    }

    @Test(arguments: Way.allCases, Lack.allCases)
    func `a disk full of replaced values does not stop further puts`(way: Way, lack: Lack) throws {
        let mount = try Mount("tmpfs", options: lack.options)
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.memory = .none
        if way == .sidecar { configuration.metadataForm = .sidecar }
        if way == .hasty { configuration.roomPatience = .zero }
        let failures = Locked(0)
        configuration.onEvent = { if case .publishFailed = $0 { failures.withLock { $0 += 1 } } }
        let cache = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        let source = try TemporaryDirectory()
        for index in 0..<(lack == .blocks ? 150 : 300) {
            let value = Data(SeededGenerator.bytes(lack == .blocks ? 100_000 : 100, seed: UInt64(index)))
            switch way {
            case .bytes, .sidecar, .hasty, .file, .pipe: try put(value, "key", way, in: cache, by: source)
            case .behind:
                try cache.put(value, forKey: "key", options: PutOptions(writing: .behind))
                _ = cache.flush()
            case .computed:
                try cache.remove(forKey: "key")
                let computed = cache.value(forKey: "key") { value }
                #expect(computed == value)
            case .updated: try cache.update(forKey: "key") { _ in .value(value) }
            }
            #expect(try cache.get(forKey: "key")?.value == value)
        }
        #expect(cache.directory.activity.cacheFailures == 0 && failures.withLock { $0 } == 0)
    }

    /// Puts a value from memory, from a file in `place` or from a pipe.
    private func put(
        _ value: Data,
        _ key: String,
        _ way: Way,
        in cache: SharedCache,
        by place: TemporaryDirectory
    ) throws {
        switch way {
        case .file:
            try value.write(to: URL(fileURLWithPath: place.path + "/value"))
            try cache.put(contentsOfFile: place.path + "/value", forKey: key)
        case .pipe:
            let pipe = Foundation.Pipe()
            let writer = pipe.fileHandleForWriting
            Thread.detachNewThread {
                try? writer.write(contentsOf: value)
                try? writer.close()
            }
            try cache.put(contentsOfDescriptor: pipe.fileHandleForReading.fileDescriptor, forKey: key)
        default: try cache.put(value, forKey: key)
        }
    }

    /// Returns a cache far below its limit, on a disk filled by other files, in which a put was killed after it had reserved
    /// its room.
    private func hopelessCache(_ mount: Mount) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        var limits = CacheLimits()
        limits.maximumSize = .bytes(1 << 30)
        configuration.limits = limits
        let cache = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        let process = try stoppedProcess(at: "claimed", in: cache.path)
        process.send(Signal.kill)
        try fill(mount)
        return cache
    }

    /// Fills the file system with a file that does not belong to the cache.
    private func fill(_ mount: Mount) throws {
        makeFile(mount.path + "/fill")
        let file = try #require(FileHandle(forWritingAtPath: mount.path + "/fill"))
        while (try? file.write(contentsOf: Data(repeating: 1, count: 64 * 1024))) != nil {}
    }

    @Test(arguments: [Way.bytes, .file, .pipe])
    func `a put fails if other files fill the disk and nothing can be evicted`(way: Way) throws {
        let mount = try Mount("tmpfs", options: "size=8m")
        let cache = try hopelessCache(mount)
        let value = Data(SeededGenerator.bytes(100_000, seed: 1))
        #expect(code { try put(value, "new", way, in: cache, by: mount.directory) } == .noSpace)
        #expect(cache.directory.activity.evictions == 0)
    }

    @Test(arguments: [CacheLimits.FreeSpace.percent(10), nil])
    func `a value that is too large for the disk evicts nothing`(floor: CacheLimits.FreeSpace?) throws {
        let mount = try Mount("tmpfs", options: "size=40m")
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        var limits = CacheLimits()
        limits.minimumFree = floor
        limits.maximumEntries = 1000
        configuration.limits = limits
        let cache = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        for index in 0..<8 {
            try cache.put(Data(SeededGenerator.bytes(1_000_000, seed: UInt64(index))), forKey: "key \(index)")
        }
        for way in [Way.bytes, .file] {
            let value = Data(SeededGenerator.bytes(60_000_000, seed: 100))
            #expect(code { try put(value, "large", way, in: cache, by: mount.directory) } == .valueTooLarge)
        }
        #expect(try cache.directory.totals()?.usage.entries == 8)
        // A value that fits after evictions is stored.
        try cache.put(Data(SeededGenerator.bytes(33_000_000, seed: 101)), forKey: "large")
    }

    @Test func `run completes even if other files fill the disk`() throws {
        let mount = try Mount("tmpfs", options: "size=8m")
        let cache = try hopelessCache(mount)
        let words = ["run", "--dir", cache.path, "--", "head", "-c", "1000000", "/dev/zero"]
        let limit = "\(hangLimit.components.seconds)"
        let run = try BuiltCommand.run("/usr/bin/timeout", [limit, BuiltCommand.path] + words)
        #expect(run.status == 0 && run.output.utf8.count == 1_000_000)
    }

    @Test func `garbage of several processes on a full disk does not stop their puts`() throws {
        let mount = try Mount("tmpfs", options: "size=8m")
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let caches = try (0..<3).map { _ in
            try SharedCache(at: mount.path + "/cache", configuration: configuration)
        }
        let failures = Locked<[String]>([])
        onThreads(3) { thread in
            for index in 0..<100 {
                let value = Data(SeededGenerator.bytes(100_000, seed: UInt64(thread * 1000 + index)))
                do {
                    try caches[thread].put(value, forKey: "key \(thread)")
                } catch {
                    failures.withLock { $0.append("\(error)") }
                }
            }
        }
        #expect(failures.withLock { $0 } == [])
    }

    @Test func `a collection that frees nothing is not repeated for every put that finds the disk full`()
        throws
    {
        let mount = try Mount("tmpfs", options: "size=4m")
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let cache = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        _ = fill(cache, size: 50_000)
        let collections = cache.directory.activity.collections
        for index in 0..<100 {
            let value = Data(SeededGenerator.bytes(50_000, seed: UInt64(5000 + index)))
            #expect(code { try cache.put(value, forKey: "other") } == .noSpace)
        }
        // There is at most one collection per second, and a hundred of these puts take less than a second.
        #expect(cache.directory.activity.collections - collections < 50)
    }

    /// Returns a cache with 10 % as the minimum of free space, eight values of 1 MB, and a disk filled by other files.
    private func crowdedCache(_ mount: Mount) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        var limits = CacheLimits()
        limits.minimumFree = .percent(10)
        configuration.limits = limits
        let cache = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        for index in 0..<8 {
            try cache.put(Data(SeededGenerator.bytes(1_000_000, seed: UInt64(index))), forKey: "key \(index)")
        }
        try fill(mount)
        return cache
    }

    @Test(arguments: [Way.bytes, .file, .pipe])
    func `if other files fill the disk a put makes room first, and evicts no more than it needs`(way: Way)
        throws
    {
        let mount = try Mount("tmpfs", options: "size=40m")
        let cache = try crowdedCache(mount)
        let value = Data(SeededGenerator.bytes(1_000_000, seed: 100))
        try put(value, "more", way, in: cache, by: mount.directory)
        #expect(try cache.get(forKey: "more")?.value == value)
        let space = try FileManager.default.attributesOfFileSystem(forPath: mount.path)
        let free = try #require(space[.systemFreeSize] as? Int)
        let size = try #require(space[.systemSize] as? Int)
        #expect(free >= size / 10)
        // Eviction ends at the low mark, a tenth above the minimum, rounded up to whole values.
        #expect(free < size * 11 / 100 + 2 * 1_000_000)
        #expect(cache.directory.activity.evictions >= 4)
    }

    @Test func `without a free inode a put fails, and overwriting still works`() throws {
        let mount = try Mount("tmpfs", options: "size=10m,nr_inodes=250")
        let cache = try SharedCache(at: mount.path + "/cache")
        let (stored, code) = fill(cache, size: 100)
        #expect(code == .noSpace)
        #expect(stored > 3)
        #expect(try cache.get(forKey: "key 0")?.value == Data(SeededGenerator.bytes(100, seed: 0)))
        try cache.put(Data(SeededGenerator.bytes(100, seed: 0)), forKey: "key 1")
        #expect(try cache.get(forKey: "key 1")?.value == Data(SeededGenerator.bytes(100, seed: 0)))
        try cache.removeAll()
        try cache.put("x", forKey: "again")
    }

    /// The object gets the last inode, and the entry none.
    @Test func `with one free inode a put fails after few collections`() throws {
        let mount = try Mount(imageOf: "ext4", megabytes: 40, ["-N", "1000"])
        let cache = try SharedCache(at: mount.path + "/cache")
        try cache.put("value", forKey: "a")
        for shard in 0..<256 {
            for part in ["objects", "entries"] {
                let path = "\(mount.path)/cache/\(part)/" + String(format: "%02x", shard)
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            }
        }
        var files = 0
        while FileManager.default.createFile(atPath: "\(mount.path)/\(files)", contents: nil) { files += 1 }
        try FileManager.default.removeItem(atPath: "\(mount.path)/0")
        let before = cache.directory.activity.collections
        #expect(code { try cache.put("another", forKey: "b") } == .noSpace)
        #expect(cache.directory.activity.collections - before <= 3)
        #expect(try cache.get(forKey: "a")?.value == Data("value".utf8))
    }

    @Test func `a read-only cache can be read, and puts fail with readOnly`() throws {
        let mount = try Mount("tmpfs")
        try SharedCache(at: mount.path + "/cache").put("value", forKey: "key")
        try mount.remount("ro")
        let cache = try SharedCache(at: mount.path + "/cache")
        #expect(try cache.get(forKey: "key")?.value == Data("value".utf8))
        #expect(code { try cache.put("new", forKey: "key") } == .readOnly)
        #expect(code { try cache.remove(forKey: "key") } == .readOnly)
        #expect(code { _ = try SharedCache(at: mount.path + "/other") } == .readOnly)
        #expect(cache.directory.activity.unnotedAccesses == 0)
        #expect(try cache.directory.verify().isClean)
        let object = try #require(mount.directory.files(below: "mount/cache/objects").first)
        try mount.remount("rw")
        try FileManager.default.removeItem(atPath: mount.path + "/cache/objects/" + object)
        try mount.remount("ro")
        #expect(try cache.directory.verify().danglingEntries.count == 1)
    }

    @Test func `without extended attributes records are stored in sidecars`() throws {
        let mount = try Mount("ramfs")
        let cache = try SharedCache(at: mount.path + "/cache")
        try cache.put("value", forKey: "key", options: PutOptions(expires: .days(1), tags: ["t"]))
        let hit = try #require(try cache.get(forKey: "key"))
        #expect(hit.value == Data("value".utf8))
        #expect(hit.entry.tags == ["t"])
        try cache.put("other", forKey: "key")
        #expect(try cache.directory.collect().removed[.orphan]?.count == 1)
        #expect(try cache.directory.verify().isClean)
    }

    @Test func `a copy on a file system without attributes is neither opened nor emptied`() throws {
        let directory = try TemporaryDirectory()
        let original = try SharedCache(at: directory.path + "/cache")
        try original.put("value", forKey: "key")
        let mount = try Mount("ramfs")
        let copy = mount.path + "/cache"
        try FileManager.default.copyItem(atPath: directory.path + "/cache", toPath: copy)
        let before = mount.directory.files(below: "mount/cache/entries")
        // The copy can't be distinguished from a cache in use whose attributes a sandbox refuses to read.
        let error = #expect(throws: CacheError.self) { try SharedCache(at: copy) }
        #expect(error?.code == .inputOutput && error?.message.contains("extended attributes") == true)
        #expect(mount.directory.files(below: "mount/cache/entries") == before && before.count == 1)
    }
}

/// Tests of file systems where a store into a mapped file may need space that a full disk does not have.
@Suite(.enabled(if: Mount.isAllowed, "mounting a file system needs root"), .takesTurns)
struct CopyOnWriteTests {
    /// The types that can be formatted here; the others are not tested.
    static let types = ["btrfs", "xfs"].filter { Mount.canFormat($0) }

    /// Returns a full file system with a cache of five values.
    private static func fullMount(_ type: String) throws -> Mount {
        let mount = try Mount(imageOf: type, megabytes: type == "xfs" ? 320 : 160)
        let cache = try SharedCache(at: mount.path + "/cache")
        for index in 0..<5 {
            try cache.put(Data(SeededGenerator.bytes(20_000, seed: UInt64(index))), forKey: "\(index)")
        }
        // From now on XFS, too, writes changes of the file to new blocks.
        let clone = ["-a", "--reflink=always", mount.path + "/cache/control", mount.path + "/clone"]
        #expect(try BuiltCommand.run("/bin/cp", clone).status == 0)
        try mount.fill()
        return mount
    }

    @Test(arguments: types)
    func `on a full copy-on-write file system no command ends by a signal`(type: String) throws {
        let mount = try Self.fullMount(type)
        let path = mount.path + "/cache"
        let value = mount.directory.path + "/value"
        try Data(SeededGenerator.bytes(100_000, seed: 9)).write(to: URL(fileURLWithPath: value))
        var ends: [String: Int32] = [:]
        for line in [
            "get 0", "get nothing", "put new \(value)", "stats", "ls", "verify", "info 1", "touch 2", "rm 1",
            "gc", "doctor",
            "get 0",
        ] {
            let words = line.split(separator: " ").map(String.init) + ["--dir", path]
            let script = "\"$0\" \"$@\" >/dev/null 2>&1; echo $?"
            let output = try BuiltCommand.run("/bin/sh", ["-c", script, BuiltCommand.path] + words).output
            ends[line] = Int32(output.trimmingCharacters(in: .whitespacesAndNewlines))
            // The changes of the command are written to the disk, so that the next store needs a new block.
            try mount.synchronize()
        }
        #expect(ends.values.allSatisfy { $0 < 128 }, "\(ends)")
        #expect(
            ends["get 0"] == 0 && ends["put new \(value)"] == 73 && ends["rm 1"] == 0 && ends["gc"] == 0,
            "\(ends)"
        )
    }

    @Test(arguments: types)
    func `on a full copy-on-write file system a process reads and removes, and puts fail with noSpace`(
        type: String
    )
        throws
    {
        let mount = try Self.fullMount(type)
        let cache = try SharedCache(at: mount.path + "/cache")
        for round in 0..<3 {
            for index in 0..<5 where index != round {
                let expected = Data(SeededGenerator.bytes(20_000, seed: UInt64(index)))
                if index > round { #expect(try cache.get(forKey: "\(index)")?.value == expected) }
                #expect(try cache.get(forKey: "4")?.value == Data(SeededGenerator.bytes(20_000, seed: 4)))
            }
            let error = #expect(throws: CacheError.self) {
                try cache.put(Data(SeededGenerator.bytes(400_000, seed: 99)), forKey: "new")
            }
            #expect(error?.code == .noSpace)
            #expect(try cache.remove(forKey: "\(round)"))
            try mount.synchronize()
        }
        #expect(cache.directory.activity.memoryHits > 0)
        let line = try BuiltCommand.run(BuiltCommand.path, ["doctor", "--dir", mount.path + "/cache"]).output
            .split(separator: "\n").first { $0.contains("control file") }
        #expect(line?.contains("in /dev/shm") == true, "\(line ?? "")")
    }

    @Test(arguments: types)
    func `a locked control file delays calls by less than a second, and a deleted one leaves nothing`(
        type: String
    ) throws {
        let mount = try Mount(imageOf: type, megabytes: type == "xfs" ? 320 : 160)
        let path = mount.path + "/cache"
        try SharedCache(at: path).put("value", forKey: "key")
        let control = try #require(FileHandle(forReadingAtPath: path + "/control"))
        waitUntil("who has closed the cache uses it no more") {
            flock(control.fileDescriptor, LOCK_EX | LOCK_NB) == 0
        }
        let limit = Duration.seconds(1)
        let readingTime = try shortestTime(below: limit) {
            let hit = try SharedCache(at: path).get(forKey: "key")
            #expect(hit?.value == Data("value".utf8))
        }
        let writingTime = shortestTime(below: limit) {
            do throws(CacheError) {
                try SharedCache(at: path).put("other", forKey: "key")
            } catch {
                #expect(error.code == .busy)
            }
        }
        #expect(readingTime < limit && writingTime < limit)
        // A process that was started meanwhile may have inherited the descriptor, and with it the lock.
        flock(control.fileDescriptor, LOCK_UN)
        try control.close()

        let cache = try SharedCache(at: path)
        try cache.put("value", forKey: "key")
        let words = try String(contentsOfFile: path + "/control", encoding: .utf8).dropLast()
        #expect(FileManager.default.fileExists(atPath: String(words)))
        try FileManager.default.removeItem(atPath: path + "/control")
        try waitUntil("the words of a control file that was removed are removed too") {
            try cache.put("other", forKey: "key")
            return !FileManager.default.fileExists(atPath: String(words))
        }
    }

    @Test(arguments: types)
    func `without room in /dev/shm the cache works without shared memory, and uses it later`(type: String)
        throws
    {
        let mount = try Mount(imageOf: type, megabytes: type == "xfs" ? 320 : 160)
        let script = """
            set -e
            mount --make-rprivate /
            eval "$2"
            echo one | "$0" put key - --dir "$1"
            "$0" get key --dir "$1"
            "$0" doctor --dir "$1" | grep 'control file'
            """
        let path = mount.path + "/cache"
        func run(_ preparation: String) throws -> (output: String, status: Int32) {
            try BuiltCommand.run(
                "/usr/bin/unshare",
                ["-m", "sh", "-c", script, BuiltCommand.path, path, preparation]
            )
        }
        let another = "mount -t tmpfs -o size=64k tmpfs /dev/shm"
        let without = try run(another)
        #expect(without.status == 0 && without.output.hasPrefix("one\n"), "\(without)")
        #expect(without.output.contains("fallback  control file  none"), "\(without)")
        let cache = try SharedCache(at: path)
        #expect(try cache.get(forKey: "key")?.value == Data("one\n".utf8))
        #expect(try cache.directory.totals() != nil)
        // A process with another /dev/shm is now prevented from storing values that the others would not notice.
        for preparation in [another, "mount --bind /dev/shm /dev/shm; mount -o remount,bind,ro /dev/shm"] {
            let blind = try run(preparation)
            #expect(blind.status == 75, "\(preparation): \(blind)")
        }
        #expect(try cache.get(forKey: "key")?.value == Data("one\n".utf8))
    }

    @Test(.enabled(if: SandboxTests.canForbidMoves, "no Landlock here"), arguments: types)
    func `processes share memory even if no file can be moved between directories`(type: String) throws {
        let mount = try Mount(imageOf: type, megabytes: type == "xfs" ? 320 : 160)
        let tool = try Tool()
        for words in [["put", "key"], ["get", "key"], ["doctor"]] {
            let run = try tool.run(
                refusing: ["between-directories"],
                .permission,
                words + ["--dir", mount.path + "/cache"],
                input: "value"
            )
            #expect(run.status == 0, "\(run)")
            if words == ["doctor"] { #expect(run.output.contains("in /dev/shm"), "\(run)") }
        }
    }

    /// Simulates the steps of a build in containers, each with its own `/dev/shm`, beside a process that has the cache open.
    @Test(arguments: types)
    func `containers without a common /dev/shm can share a cache`(type: String) throws {
        let mount = try Mount(imageOf: type, megabytes: type == "xfs" ? 320 : 160)
        let path = mount.path + "/cache"
        let cache = try SharedCache(at: path)
        try cache.put("old", forKey: "key")
        #expect(try cache.get(forKey: "key")?.value == Data("old".utf8))
        func run(_ command: String) throws -> (output: String, status: Int32) {
            let script = """
                mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && export DISKCACHE_DIR="$1" && \(command)
                """
            return try BuiltCommand.run(
                "/usr/bin/unshare",
                ["-m", "sh", "-c", script, BuiltCommand.path, path]
            )
        }
        #expect(try run("echo new | \"$0\" put key").status == 75)
        #expect(try run("\"$0\" config set share-memory false").status == 0)
        waitUntil("the process follows") {
            ((try? run("echo new | \"$0\" put key").status) ?? 1) == 0
                && (try? cache.get(forKey: "key")?.value) == Data("new\n".utf8)
        }
        // Each process sees at once a value that another has stored, even if it holds an older one in memory.
        for number in 0..<5 {
            #expect(try run("echo \(number) | \"$0\" put key").status == 0)
            #expect(try cache.get(forKey: "key")?.value == Data("\(number)\n".utf8))
            try cache.put("\(number + 1)", forKey: "key")
            #expect(try run("\"$0\" get key").output == "\(number + 1)")
        }
        // A process that opens the cache now uses no shared memory from the start.
        try FileManager.default.removeItem(atPath: path + "/control")
        #expect(try run("printf 5 | \"$0\" put key").status == 0)
        #expect(!FileManager.default.fileExists(atPath: path + "/control"))
        let doctor = try run("\"$0\" doctor")
        #expect(doctor.output.contains("share-memory is false"), "\(doctor)")
        // After the change back a process that opens the cache finds the values that were stored meanwhile.
        #expect(
            try BuiltCommand.run(BuiltCommand.path, ["config", "unset", "share-memory", "--dir", path]).status
                == 0
        )
        let other = try SharedCache(at: path)
        #expect(try other.get(forKey: "key")?.value == Data("5".utf8))
        #expect(try other.directory.totals() != nil)
    }
}
