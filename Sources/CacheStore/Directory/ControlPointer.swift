// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The contents of `control` if the words are in memory: the path of a file in `/dev/shm`.
///
/// The two files belong together as long as both exist: the name is random, the file in `/dev/shm` is created once, and its
/// words contain the seal of the inode that names them (``ControlWord/pointerSeal``). So a copy of the directory never
/// shares the words.
///
/// A process that has the words mapped holds a shared lock on both files. The lock on `control` shows a process that can't
/// see the words (another mount namespace, a name that was removed) that they are in use. The lock on the words keeps
/// ``removeOrphans(in:)`` from deleting them.
struct ControlPointer: Equatable {
    /// "diskcache-" and 32 hexadecimal digits.
    let name: RelativePath

    private static let prefix = "diskcache-"
    private static let digitCount = 32
    /// The size of a file with a pointer, in bytes.
    private static let size = SharedMemory.path.utf8.count + 1 + prefix.utf8.count + digitCount + 1

    /// Creates a pointer to a file that does not exist yet.
    init() {
        var name = RelativePath(Self.prefix)
        let random = InlineArray<4, UInt64> { _ in UInt64.random(in: 0 ... .max) }
        name.append(hexadecimal: random, first: Self.digitCount / 2)
        self.name = name
    }

    /// Creates a pointer from the name of a file in `/dev/shm`; nil if it isn't a pointer's name.
    init?(name: Substring) {
        guard name.hasPrefix(Self.prefix), name.utf8.count == Self.prefix.utf8.count + Self.digitCount,
            name.dropFirst(Self.prefix.count).allSatisfy({ "0123456789abcdef".contains($0) })
        else { return nil }
        self.name = RelativePath(String(name))
    }

    /// Reads the pointer from an open file; nil if the file contains none.
    init?(in file: borrowing FileDescriptor) throws(Errno) {
        let bytes = try file.read(Self.size + 1)
        let text = String(decoding: bytes, as: UTF8.self)
        guard bytes.count == Self.size, text.hasPrefix(SharedMemory.path + "/"), text.last == "\n" else {
            return nil
        }
        self.init(name: text.dropFirst(SharedMemory.path.count + 1).dropLast())
    }

    static func == (left: ControlPointer, right: ControlPointer) -> Bool { left.path == right.path }

    /// The path of the words.
    var path: String { "\(SharedMemory.path)/\(name)" }

    func write(to file: borrowing FileDescriptor) throws(Errno) {
        try file.writeAll((path + "\n").utf8Span.span)
    }

    // MARK: The words

    /// How long to wait for a lock that another process holds briefly: to create the words, or to check whether they are in
    /// use.
    ///
    /// A writer may wait twice, when it opens the cache and before its first entry: less than a second in total.
    static let patience: Duration = .milliseconds(400)

    /// The errors if this process may not write `/dev/shm`, for example in a container that sees it read-only.
    private static let refusals: [Errno] = [.accessDenied, .notPermitted, .readOnlyFileSystem, .noDevice]

    /// Opens the words, which count as in use until the last descriptor and the last mapping are gone.
    ///
    /// Returns nil if there are no words that this process can see and that belong to `owner`, the owner of `control`: any
    /// user may create files in `/dev/shm`.
    func open(isWritable: Bool, owner: UInt32) throws(Errno) -> FileDescriptor? {
        let file: FileDescriptor
        do throws(Errno) {
            let access: OpenFlags = isWritable ? .readWrite : .readOnly
            file = try SharedMemory.open().open(name, access)
        } catch {
            if error.isMissing || error.isNotRegularFile || Self.refusals.contains(error) { return nil }
            throw error
        }
        let status = try file.status()
        guard status.kind == .regular, status.owner == owner, status.size == ControlLayout.memoryByteCount
        else { return nil }
        try file.lock(.shared, until: .now + Self.patience)
        // The last holder of the lock may have removed the file.
        if try file.status().linkCount == 0 { return nil }
        return file
    }

    /// Creates the file for the words of the cache at `directory`, with all its blocks allocated.
    ///
    /// The file counts as in use until it is closed. The path of the directory is written before the blocks are allocated.
    /// So if the process is killed and leaves a file with blocks, that file is recognized as an orphan.
    ///
    /// - Throws: ``Errno/noEntry`` if another process has deleted the file as an orphan before it was locked: try again with
    ///   another name.
    func make(for directory: String) throws(Errno) -> FileDescriptor {
        let memory = try SharedMemory.open()
        Self.removeOrphans(in: memory)
        let file = try memory.open(name, [.readWrite, .create, .exclusive], mode: FileMode.file)
        do throws(Errno) {
            guard try file.tryLock(.shared), try file.status().linkCount > 0 else { throw .noEntry }
            let path = Array(
                try CurrentProcess.absolutePath(directory).pathBytes.prefix(ControlLayout.memoryPathSize)
            )
            try file.write(path.span, at: ControlLayout.byteCount)
            try file.allocate(ControlLayout.memoryByteCount)
            return file
        } catch {
            remove()
            throw error
        }
    }

    /// Removes the words; processes that have them mapped keep them.
    ///
    /// If the words can't be removed, they become an orphan, which the next process that creates words finds.
    func remove() {
        bestEffort { () throws(Errno) in try SharedMemory.open().unlink(name) }
    }

    /// Returns whether other processes can find the words.
    ///
    /// One system call.
    func leads(to identity: FileStatus.Identity) throws(Errno) -> Bool {
        try ifExists { () throws(Errno) in try FileStatus.ofLink(path).identity } == identity
    }

    /// Removes this user's words that no process uses and whose directory is gone or has other words.
    ///
    /// If the directory exists but this process can't see it, its words are recreated there, and only counts are lost.
    private static func removeOrphans(in memory: borrowing Directory) {
        bestEffort { () throws(Errno) in
            for name in try memory.names() {
                guard let pointer = ControlPointer(name: name[...]) else { continue }
                // Another user's file, or already deleted: skip it.
                bestEffort { () throws(Errno) in
                    let file = try memory.open(pointer.name, .readWrite)
                    // Check first without the lock: a process that maps words in use waits for the lock only for a limited
                    // time, and checking their directory can take longer. Check again with the lock: the directory may have
                    // named the words meanwhile.
                    guard try file.status().owner == CurrentProcess.effectiveUser,
                        try !pointer.isNamed(by: file),
                        try file.tryLock(.exclusive),
                        try !pointer.isNamed(by: file)
                    else { return }
                    try memory.unlink(pointer.name)
                }
            }
        }
    }

    /// Returns whether the directory that the words were created for still names them.
    ///
    /// Returns true if the words don't contain the path of the directory. Returns false for an empty file: its creator
    /// still holds its lock, or was killed.
    private func isNamed(by words: borrowing FileDescriptor) throws(Errno) -> Bool {
        if try words.status().size == 0 { return false }
        let path = try words.read(ControlLayout.memoryPathSize, at: ControlLayout.byteCount).prefix {
            $0 != 0
        }
        if path.isEmpty || path.count == ControlLayout.memoryPathSize { return true }
        do throws(Errno) {
            let directory = try Directory(opening: String(pathBytes: Array(path)))
            return try ControlPointer(in: directory.open(StoreLayout.control, .readOnly)) == self
        } catch {
            if error == .noEntry || error == .notDirectory || error.wordsOfNoFile != nil { return false }
            throw error
        }
    }
}
