// SPDX-License-Identifier: Apache-2.0

import CSimulator
import Glibc

/// The result of a call: not negative, or an errno with a minus sign, as the kernel itself returns it.
typealias CallResult = Int

/// The part of Linux that the product uses: one file system in memory, like ext4, with locks and shared mappings.
///
/// It lacks symbolic links, permissions, signals, `/proc` except the boot's identity. Calls are made one at a
/// time; each is atomic, as on Linux for the calls that the protocols rely on.
final class SimulatedKernel {
    private(set) var root: SimulatedFile
    private var nextNumber: UInt64 = 2
    private var files: [SimulatedFile] = []
    /// The size of the file system in pages.
    var capacity = 1 << 20
    /// The allocated pages of all files, those without a name included.
    private(set) var used = 0
    /// The safeguard that is taken away, if any.
    var mistake: Mistake?
    /// The nanoseconds since 1970 that files are dated with; set before each call.
    var fileTime: Int64 = 0
    /// The magic number of the file system, statfs(2).
    static let magic: Int64 = 0xEF53

    init(now: Int64) {
        fileTime = now
        root = SimulatedFile(number: 1, isDirectory: true, mode: 0o755, now: now)
        root.links = 1
        let place = "proc/sys/kernel/random".split(separator: "/").reduce(root) { directory, name in
            enter(String(name), make(isDirectory: true, mode: 0o755), in: directory)
        }
        let boot = enter("boot_id", make(isDirectory: false, mode: 0o444), in: place)
        let text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n"
        boot.write(text, text.utf8.count, at: 0)
        _ = enter("tmp", make(isDirectory: true, mode: 0o777), in: root)
    }

    private func make(isDirectory: Bool, mode: UInt32) -> SimulatedFile {
        defer { nextNumber += 1 }
        if isDirectory { used += 1 }
        let file = SimulatedFile(
            number: nextNumber,
            isDirectory: isDirectory,
            mode: mode & 0o7777,
            now: fileTime
        )
        files.append(file)
        return file
    }

    @discardableResult
    private func enter(_ name: String, _ file: SimulatedFile, in directory: SimulatedFile) -> SimulatedFile {
        directory.names[name] = file
        file.name = name
        file.isObject = !file.isDirectory && directory.parent?.name == "objects"
        file.links += 1
        if file.isDirectory { file.parent = directory }
        directory.modified = fileTime
        directory.changed = fileTime
        file.changed = fileTime
        return file
    }

    /// Whether ``formerNames`` are kept.
    var keepsFormerNames = false

    private func leave(_ name: String, of directory: SimulatedFile) {
        guard let file = directory.names.removeValue(forKey: name) else { return }
        if keepsFormerNames, !file.isDirectory, ["objects", "entries"].contains(directory.parent?.name) {
            formerNames.append((name, directory, file))
            if formerNames.count > 8 { formerNames.removeFirst() }
        }
        file.links -= 1
        file.changed = fileTime
        directory.modified = fileTime
        directory.changed = fileTime
        release(file)
    }

    private func release(_ file: SimulatedFile) {
        if file.links == 0, file.uses == 0 { used -= file.allocatedPages }
    }

    /// Changes a file and accounts for the pages that the change allocates or frees.
    private func change(_ file: SimulatedFile, _ body: () -> Void) {
        let before = file.allocatedPages
        body()
        used += file.allocatedPages - before
        file.changed = fileTime
    }

    private func hasRoom(for pages: Int) -> Bool { pages == 0 || used + pages <= capacity }

    // MARK: Paths

    private enum Place {
        /// A name in a directory, and its file if it exists.
        case name(String, in: SimulatedFile, SimulatedFile?)
        /// A directory itself: "/", "." or "".
        case directory(SimulatedFile)
        case failure(Int32)

        var file: SimulatedFile? {
            switch self {
            case .name(_, _, let file): file
            case .directory(let file): file
            case .failure: nil
            }
        }
    }

    private func find(_ directory: Int, _ path: String, _ process: SimulatedProcess) -> Place {
        var place: SimulatedFile
        if path.utf8.first == UInt8(ascii: "/") || directory == Int(AT_FDCWD) {
            place = root
        } else {
            guard let description = process.description(directory) else { return .failure(EBADF) }
            place = description.file
            guard place.isDirectory || path.isEmpty else { return .failure(ENOTDIR) }
        }
        var parts = path.split(separator: "/").filter { $0 != "." }
        guard let last = parts.popLast() else { return .directory(place) }
        for part in parts {
            guard let next = part == ".." ? place.parent ?? root : place.names[String(part)] else {
                return .failure(ENOENT)
            }
            guard next.isDirectory else { return .failure(ENOTDIR) }
            place = next
        }
        return .name(String(last), in: place, place.names[String(last)])
    }

    // MARK: Calls on names

    func open(_ directory: Int, _ path: String, _ flags: Int32, _ mode: UInt32, _ process: SimulatedProcess)
        -> CallResult
    {
        let unnamed: Int32 = 0o20200000
        let place = find(directory, path, process)
        if case .failure(let error) = place { return -Int(error) }
        let file: SimulatedFile
        if flags & unnamed == unnamed {
            guard let directory = place.file else { return -Int(ENOENT) }
            guard directory.isDirectory else { return -Int(ENOTDIR) }
            file = make(isDirectory: false, mode: mode)
        } else if let present = place.file {
            if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL { return -Int(EEXIST) }
            if flags & O_DIRECTORY != 0, !present.isDirectory { return -Int(ENOTDIR) }
            if present.isDirectory, flags & O_ACCMODE != O_RDONLY || flags & O_CREAT != 0 {
                return -Int(EISDIR)
            }
            if flags & O_TRUNC != 0 { change(present) { present.truncate(to: 0) } }
            file = present
        } else {
            guard flags & O_CREAT != 0, case .name(let name, let parent, _) = place else {
                return -Int(ENOENT)
            }
            // A directory that was removed while it is open takes no new names.
            guard parent.links > 0 else { return -Int(ENOENT) }
            file = enter(name, make(isDirectory: false, mode: mode), in: parent)
        }
        return process.add(SimulatedDescription(file, flags: flags))
    }

    func makeDirectory(_ directory: Int, _ path: String, _ mode: UInt32, _ process: SimulatedProcess)
        -> CallResult
    {
        switch find(directory, path, process) {
        case .failure(let error): return -Int(error)
        case .directory: return -Int(EEXIST)
        case .name(let name, let parent, let present):
            if present != nil { return -Int(EEXIST) }
            guard parent.links > 0 else { return -Int(ENOENT) }
            guard hasRoom(for: 1) else { return -Int(ENOSPC) }
            enter(name, make(isDirectory: true, mode: mode), in: parent)
            return 0
        }
    }

    func link(
        _ directory: Int,
        _ path: String,
        _ newDirectory: Int,
        _ newPath: String,
        _ flags: Int32,
        _ process: SimulatedProcess
    ) -> CallResult {
        let source: SimulatedFile
        if path.isEmpty, flags & 0x1000 != 0 {
            guard let description = process.description(directory) else { return -Int(EBADF) }
            source = description.file
        } else {
            let place = find(directory, path, process)
            if case .failure(let error) = place { return -Int(error) }
            guard let file = place.file else { return -Int(ENOENT) }
            source = file
        }
        if source.isDirectory { return -Int(EPERM) }
        switch find(newDirectory, newPath, process) {
        case .failure(let error): return -Int(error)
        case .directory: return -Int(EEXIST)
        case .name(let name, let parent, let present):
            if present != nil { return -Int(EEXIST) }
            guard parent.links > 0 else { return -Int(ENOENT) }
            enter(name, source, in: parent)
            return 0
        }
    }

    func rename(
        _ directory: Int,
        _ path: String,
        _ newDirectory: Int,
        _ newPath: String,
        _ process: SimulatedProcess
    ) -> CallResult {
        guard case .name(let name, let parent, let file?) = find(directory, path, process) else {
            return -Int(ENOENT)
        }
        switch find(newDirectory, newPath, process) {
        case .failure(let error): return -Int(error)
        case .directory: return -Int(EBUSY)
        case .name(let newName, let newParent, let present):
            if present === file { return 0 }
            if let present {
                if present.isDirectory != file.isDirectory {
                    return -Int(present.isDirectory ? EISDIR : ENOTDIR)
                }
                if !present.names.isEmpty { return -Int(ENOTEMPTY) }
                leave(newName, of: newParent)
            }
            enter(newName, file, in: newParent)
            leave(name, of: parent)
            return 0
        }
    }

    func unlink(_ directory: Int, _ path: String, _ flags: Int32, _ process: SimulatedProcess) -> CallResult {
        guard case .name(let name, let parent, let file?) = find(directory, path, process) else {
            return -Int(ENOENT)
        }
        let removesDirectory = flags & AT_REMOVEDIR != 0
        if file.isDirectory != removesDirectory { return -Int(file.isDirectory ? EISDIR : ENOTDIR) }
        if !file.names.isEmpty { return -Int(ENOTEMPTY) }
        leave(name, of: parent)
        return 0
    }

    func status(
        _ directory: Int,
        _ path: String,
        _ flags: Int32,
        _ process: SimulatedProcess
    ) -> (file: SimulatedFile?, error: CallResult) {
        if path.isEmpty, flags & 0x1000 != 0 {
            guard let description = process.description(directory) else { return (nil, -Int(EBADF)) }
            return (description.file, 0)
        }
        let place = find(directory, path, process)
        if case .failure(let error) = place { return (nil, -Int(error)) }
        guard let file = place.file else { return (nil, -Int(ENOENT)) }
        return (file, 0)
    }

    // MARK: Calls on open files

    func close(_ descriptor: Int, _ process: SimulatedProcess) -> CallResult {
        guard let description = process.removeDescriptor(descriptor) else { return -Int(EBADF) }
        description.descriptors -= 1
        if description.descriptors == 0 { end(description) }
        return 0
    }

    private func end(_ description: SimulatedDescription) {
        let file = description.file
        unlock(description)
        file.ranges = file.ranges.filter { $0.value !== description }
        file.uses -= 1
        release(file)
    }

    /// Ends a process: closes its descriptors, which frees its locks, and removes its mappings.
    func end(_ process: SimulatedProcess) {
        for descriptor in process.descriptors { _ = close(descriptor, process) }
        for (address, mapping) in process.mappings { remove(mapping, at: address, process) }
    }

    func read(
        _ descriptor: Int,
        _ buffer: UnsafeMutableRawPointer,
        _ count: Int,
        at offset: Int,
        _ process: SimulatedProcess
    ) -> CallResult {
        guard let description = process.description(descriptor) else { return -Int(EBADF) }
        if description.file.isDirectory { return -Int(EISDIR) }
        let read = description.file.read(into: buffer, count, at: offset < 0 ? description.offset : offset)
        if offset < 0 { description.offset += read }
        return read
    }

    func write(
        _ descriptor: Int,
        _ bytes: UnsafeRawPointer,
        _ count: Int,
        at offset: Int,
        _ process: SimulatedProcess
    ) -> CallResult {
        guard let description = process.description(descriptor) else { return -Int(EBADF) }
        let file = description.file
        var start = offset < 0 ? description.offset : offset
        if description.flags & O_APPEND != 0 { start = file.size }
        var count = count
        // If the disk is nearly full, a write is shortened to the pages that fit, and fails if none does.
        while count > 0, !hasRoom(for: file.newPages(for: start..<start + count)) {
            count = max(0, (start + count - 1) / SimulatedFile.pageSize * SimulatedFile.pageSize - start)
            if count == 0 { return -Int(ENOSPC) }
        }
        change(file) { file.write(bytes, count, at: start) }
        // Only an object is written before it has a name.
        if mistake == .checksums, file.links == 0 { file.clear(start + count / 2..<start + count) }
        file.modified = fileTime
        if offset < 0 { description.offset = start + count }
        return count
    }

    func seek(_ descriptor: Int, _ offset: Int, _ whence: Int32, _ process: SimulatedProcess) -> CallResult {
        guard let description = process.description(descriptor) else { return -Int(EBADF) }
        switch whence {
        case SEEK_SET: description.offset = offset
        case SEEK_CUR: description.offset += offset
        case SEEK_END: description.offset = description.file.size + offset
        default:
            // SEEK_DATA.
            guard let place = description.file.data(from: offset) else { return -Int(ENXIO) }
            description.offset = place
        }
        if description.file.isDirectory { description.listing = nil }
        return description.offset
    }

    func truncate(_ descriptor: Int, to length: Int, _ process: SimulatedProcess) -> CallResult {
        guard let file = process.description(descriptor)?.file else { return -Int(EBADF) }
        change(file) { file.truncate(to: length) }
        file.modified = fileTime
        return 0
    }

    func allocate(_ descriptor: Int, _ range: Range<Int>, _ process: SimulatedProcess) -> CallResult {
        guard let file = process.description(descriptor)?.file else { return -Int(EBADF) }
        guard hasRoom(for: file.newPages(for: range)) else { return -Int(ENOSPC) }
        change(file) { file.allocate(range) }
        return 0
    }

    func list(_ descriptor: Int, _ buffer: UnsafeMutableRawPointer, _ size: Int, _ process: SimulatedProcess)
        -> CallResult
    {
        guard let description = process.description(descriptor) else { return -Int(EBADF) }
        guard description.file.isDirectory else { return -Int(ENOTDIR) }
        var rest =
            description.listing
            ?? description.file.names.sorted { $0.key < $1.key }.map { (name: $0.key, file: $0.value) }
        var filled = 0
        while let (name, file) = rest.first {
            let length = (19 + name.utf8.count + 1 + 7) / 8 * 8
            guard filled + length <= size else { break }
            let record = buffer + filled
            memset(record, 0, length)
            record.storeBytes(of: file.number, as: UInt64.self)
            record.storeBytes(of: UInt16(length), toByteOffset: 16, as: UInt16.self)
            record.storeBytes(of: file.isDirectory ? 4 : 8, toByteOffset: 18, as: UInt8.self)
            for (index, byte) in name.utf8.enumerated() {
                record.storeBytes(of: byte, toByteOffset: 19 + index, as: UInt8.self)
            }
            filled += length
            rest.removeFirst()
        }
        description.listing = rest
        return filled
    }

    // MARK: Attributes and times

    func attribute(_ file: SimulatedFile, _ name: String, _ buffer: UnsafeMutableRawPointer?, _ size: Int)
        -> CallResult
    {
        guard let value = file.attributes[name] else { return -Int(ENODATA) }
        if size == 0 { return value.count }
        guard value.count <= size else { return -Int(ERANGE) }
        value.withUnsafeBytes {
            if let base = $0.baseAddress { buffer?.copyMemory(from: base, byteCount: $0.count) }
        }
        return value.count
    }

    func setAttribute(_ file: SimulatedFile, _ name: String, to value: [UInt8]) -> CallResult {
        let old = file.attributes[name]
        let before = file.allocatedPages
        file.attributes[name] = value
        let added = file.allocatedPages - before
        guard hasRoom(for: max(0, added)) else {
            file.attributes[name] = old
            return -Int(ENOSPC)
        }
        used += added
        file.changed = fileTime
        return 0
    }

    func removeAttribute(_ file: SimulatedFile, _ name: String) -> CallResult {
        guard file.attributes[name] != nil else { return -Int(ENODATA) }
        change(file) { file.attributes[name] = nil }
        return 0
    }

    func setTimes(_ file: SimulatedFile, _ times: UnsafePointer<timespec>?) {
        func time(_ new: timespec, _ old: Int64) -> Int64 {
            // UTIME_OMIT and UTIME_NOW.
            if new.tv_nsec == 0x3fff_fffe { return old }
            if new.tv_nsec == 0x3fff_ffff { return fileTime }
            return Int64(new.tv_sec) * 1_000_000_000 + Int64(new.tv_nsec)
        }
        if mistake == .touches, file.isObject { return }
        file.accessed = times.map { time($0[0], file.accessed) } ?? fileTime
        file.modified = times.map { time($0[1], file.modified) } ?? fileTime
        file.changed = fileTime
    }

    // MARK: Locks and memory

    func lock(_ descriptor: Int, _ operation: Int32, _ process: SimulatedProcess) -> CallResult {
        guard let description = process.description(descriptor) else { return -Int(EBADF) }
        let file = description.file
        if operation & LOCK_UN != 0 {
            unlock(description)
            return 0
        }
        precondition(operation & LOCK_NB != 0, "no call waits for a lock")
        if isUnlocked(file) { return 0 }
        let isForeign = file.exclusive.map { $0 !== description } ?? false
        let hasOthers = file.sharers.contains { $0 !== description }
        if isForeign || (operation & LOCK_EX != 0 && hasOthers) { return -Int(EWOULDBLOCK) }
        unlock(description)
        if operation & LOCK_EX != 0 { file.exclusive = description } else { file.sharers.append(description) }
        return 0
    }

    /// Whether a mistake makes the locks of this file ineffective.
    private func isUnlocked(_ file: SimulatedFile) -> Bool {
        switch mistake {
        case .objectStripes: file.name.hasPrefix("object-")
        case .entryStripes: file.name.hasPrefix("entry-")
        case .janitorLock: file.name == "janitor"
        case .flightLocks: file.name.hasPrefix("flight-")
        default: false
        }
    }

    private func unlock(_ description: SimulatedDescription) {
        let file = description.file
        if file.exclusive === description { file.exclusive = nil }
        file.sharers.removeAll { $0 === description }
    }

    func lockRange(_ descriptor: Int, _ byte: Int, unlocks: Bool, _ process: SimulatedProcess) -> CallResult {
        guard let description = process.description(descriptor) else { return -Int(EBADF) }
        let file = description.file
        if let holder = file.ranges[byte], holder !== description { return unlocks ? 0 : -Int(EAGAIN) }
        file.ranges[byte] = unlocks ? nil : description
        return 0
    }

    func map(_ descriptor: Int, _ length: Int, _ process: SimulatedProcess) -> CallResult {
        guard let file = process.description(descriptor)?.file else { return -Int(EBADF) }
        guard let address = file.map(length) else { return -Int(ENOMEM) }
        file.uses += 1
        process.mappings[UInt(bitPattern: address)] = SimulatedMapping(file: file, length: length)
        return Int(bitPattern: address)
    }

    func unmap(_ address: UInt, _ process: SimulatedProcess) -> CallResult {
        guard let mapping = process.mappings[address] else { return -Int(EINVAL) }
        remove(mapping, at: address, process)
        return 0
    }

    private func remove(_ mapping: SimulatedMapping, at address: UInt, _ process: SimulatedProcess) {
        process.mappings[address] = nil
        simulator_unmap_memory(UnsafeMutableRawPointer(bitPattern: address), mapping.length)
        mapping.file.uses -= 1
        release(mapping.file)
    }

    /// Frees the contents of all files, at the end of a run.
    ///
    /// The threads of killed processes never end, so the objects that they refer to are never freed.
    func discard() {
        for file in files { file.discard() }
        files = []
    }

    // MARK: For damage and checks

    func remove(_ name: String, of directory: SimulatedFile) { leave(name, of: directory) }

    /// Removes a directory and all that is in it, as `rm -rf` does.
    func removeTree(_ name: String, of directory: SimulatedFile) {
        guard let file = directory.names[name] else { return }
        for entry in file.names.keys.sorted() { removeTree(entry, of: file) }
        leave(name, of: directory)
    }

    /// Gives a name to a file that has lost it, in place of the file that has the name now.
    func putBack(_ file: SimulatedFile, as name: String, in directory: SimulatedFile) {
        leave(name, of: directory)
        // A file without a name or a descriptor does not count as used space.
        if file.links == 0, file.uses == 0 { used += file.allocatedPages }
        _ = enter(name, file, in: directory)
    }

    /// The last names that were removed or replaced below the cache's shards, with their files.
    private(set) var formerNames: [(name: String, directory: SimulatedFile, file: SimulatedFile)] = []

    func cut(_ file: SimulatedFile, to length: Int) {
        change(file) { file.truncate(to: length) }
    }

    /// Returns the file at an absolute path.
    func file(_ path: String) -> SimulatedFile? {
        path.split(separator: "/").reduce(root) { $0?.names[String($1)] }
    }

    /// Returns the allocated bytes of all files with a name below a directory, the directory included, as du(1) does.
    func usage(below directory: SimulatedFile) -> Int {
        var pages = 0
        var seen: Set<UInt64> = []
        func visit(_ file: SimulatedFile) {
            guard seen.insert(file.number).inserted else { return }
            pages += file.allocatedPages
            for child in file.names.values { visit(child) }
        }
        visit(directory)
        return pages * SimulatedFile.pageSize
    }
}

/// A part of a file in a process's memory.
struct SimulatedMapping {
    let file: SimulatedFile
    let length: Int
}
