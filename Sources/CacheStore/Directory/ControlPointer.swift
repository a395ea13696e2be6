// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// What `control` contains where the words are in memory: the path of a file in `/dev/shm`.
///
/// The two belong together for as long as both exist: the name is random and the file is made once, and the words say
/// which inode names them (``ControlLayout/pointerSeal``). So a copy of the directory never shares them.
///
/// Whoever has the words mapped holds a shared lock on both files. That on `control` tells a process that can't see the
/// words (another mount namespace, a name that was removed) that they are in use; that on the words keeps ``removeOrphans()``
/// off.
struct ControlPointer: Equatable {
    /// "diskcache-" and 32 hexadecimal digits.
    let name: RelativePath

    private static let prefix = "diskcache-"
    private static let digitCount = 32
    /// Bytes of a file with a pointer.
    private static let size = SharedMemory.path.utf8.count + 1 + prefix.utf8.count + digitCount + 1

    /// To a file that is not made yet.
    init() {
        var name = RelativePath(Self.prefix)
        let random = InlineArray<4, UInt64> { _ in UInt64.random(in: 0 ... .max) }
        name.append(hexadecimal: random, first: Self.digitCount / 2)
        self.name = name
    }

    /// nil if `name` isn't such a name.
    init?(name: Substring) {
        guard name.hasPrefix(Self.prefix), name.utf8.count == Self.prefix.utf8.count + Self.digitCount,
            name.dropFirst(Self.prefix.count).allSatisfy({ "0123456789abcdef".contains($0) })
        else { return nil }
        self.name = RelativePath(String(name))
    }

    /// Reads a file that is open; nil where it has no pointer.
    init?(in file: borrowing FileDescriptor) throws(Errno) {
        let bytes = try file.read(Self.size + 1)
        let text = String(decoding: bytes, as: UTF8.self)
        guard bytes.count == Self.size, text.hasPrefix(SharedMemory.path + "/"), text.last == "\n" else {
            return nil
        }
        self.init(name: text.dropFirst(SharedMemory.path.count + 1).dropLast())
    }

    static func == (left: ControlPointer, right: ControlPointer) -> Bool { left.path == right.path }

    /// Of the words.
    var path: String { "\(SharedMemory.path)/\(name)" }

    func write(to file: borrowing FileDescriptor) throws(Errno) {
        try file.writeAll((path + "\n").utf8Span.span)
    }

    // MARK: The words

    /// So long a lock is waited for that others hold for a moment: to make the words, or to see whether they are in use.
    ///
    /// Twice, where a writer does so when it opens the cache and again before its first entry: in less than a second.
    static let patience: Duration = .milliseconds(400)

    /// Opens the words, and has them in use until the last descriptor and the last mapping is gone.
    ///
    /// nil where there are none that this process can see and that belong to `owner`, the owner of `control`: anybody
    /// may make files in `/dev/shm`.
    func open(isWritable: Bool, owner: UInt32) throws(Errno) -> FileDescriptor? {
        let file: FileDescriptor
        do throws(Errno) {
            let access: OpenFlags = isWritable ? .readWrite : .readOnly
            file = try SharedMemory.open().open(name, access)
        } catch {
            if error.tellsOfNothing || error.tellsOfNoFile || error == .accessDenied || error == .noDevice {
                return nil
            }
            throw error
        }
        let status = try file.status()
        guard status.kind == .regular, status.owner == owner, status.size == ControlLayout.memoryByteCount
        else { return nil }
        try file.lock(.shared, until: .now + Self.patience)
        // Did the last holder of the lock remove it?
        if try file.status().linkCount == 0 { return nil }
        return file
    }

    /// Makes the file for the words of the cache at `directory`, with all its blocks; it is in use until it is closed.
    ///
    /// The path of the directory comes first: a file with blocks that a killed process leaves is then found to be an orphan.
    func make(for directory: String) throws(Errno) -> FileDescriptor {
        let memory = try SharedMemory.open()
        Self.removeOrphans(in: memory)
        let file = try memory.open(name, [.readWrite, .create, .exclusive], mode: FileMode.file)
        do throws(Errno) {
            // Taken for an orphan before it was locked; whoever needs one tries again within a second.
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

    /// Removes the words; whoever has them mapped keeps them.
    ///
    /// What can't be removed is an orphan, and found by the next one that makes words.
    func remove() {
        bestEffort { () throws(Errno) in try SharedMemory.open().unlink(name) }
    }

    /// Whether the words can be found by others; one system call.
    func leads(to identity: FileStatus.Identity) throws(Errno) -> Bool {
        try ifExists { () throws(Errno) in try FileStatus.ofLink(path).identity } == identity
    }

    /// Removes this user's words that nobody uses and whose directory is gone or has others.
    ///
    /// Those of a directory that this process only can't see are made anew there: a loss of counts.
    private static func removeOrphans(in memory: borrowing Directory) {
        bestEffort { () throws(Errno) in
            for name in try memory.names() {
                guard let pointer = ControlPointer(name: name[...]) else { continue }
                // Somebody else's, or gone by now: not this one's affair.
                bestEffort { () throws(Errno) in
                    let file = try memory.open(pointer.name, .readWrite)
                    // Without the lock first: a process that maps words in use waits for the lock only so long, and
                    // to look at their directory can take longer. With it again: they may have been named meanwhile.
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

    /// Whether the directory that the words were made for still names them; true if they don't have its path.
    ///
    /// False for an empty file: a process makes it now and holds its lock, or was killed.
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
