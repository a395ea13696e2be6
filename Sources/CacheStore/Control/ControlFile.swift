// SPDX-License-Identifier: Apache-2.0

import Platform

/// A mapped control file: the memory that the processes of a cache share.
///
/// All its blocks are allocated before any process maps it, and it is never truncated: otherwise a full disk would kill its
/// users with SIGBUS. On file systems where this does not prevent SIGBUS, the words are in memory, and the file names them
/// (``ControlPointer``). An invalid control file is replaced by a new inode, under the `format` lock.
final class ControlFile: Sendable {
    private let mapping: MappedFile
    /// The location of the words, if they are not in the file itself.
    private let memory: (pointer: ControlPointer, identity: FileStatus.Identity)?
    /// The file that names words in memory, open with a shared lock.
    private let naming: FileDescriptor?
    /// The identity of the file at the control file's path.
    let identity: FileStatus.Identity
    /// The seal that marks the key filter in this file as complete; 0 if the boot can't be identified.
    ///
    /// It belongs to this boot and this inode, so that neither leftovers of a power cut nor a copy count as complete.
    let filterSeal: UInt64
    /// When the file was made, in ns since 1970; 0 if the file system does not report it.
    let birthTime: Int64

    private init(
        _ mapping: MappedFile,
        _ identity: FileStatus.Identity,
        birthTime: Int64,
        memory: (pointer: ControlPointer, identity: FileStatus.Identity)?,
        namedBy file: consuming FileDescriptor?
    ) {
        self.mapping = mapping
        self.memory = memory
        naming = file
        self.identity = identity
        self.birthTime = birthTime
        filterSeal = ControlMaking.filterSeal(of: identity, birthTime: birthTime)
    }

    /// The result of looking for a file at the control file's path.
    enum Finding {
        case found(ControlFile)
        /// No file, one that is no control file of this layout, or one that another directory has, too.
        case nothing
        /// A file that names words that this process can't see.
        case unreachable(FileStatus.Identity)
        /// The file system can't map files.
        case refused
    }

    /// Maps the control file of `root`.
    ///
    /// Five system calls: `openat2`, `fstat`, `statx`, `mmap`, `close`; one if the file is missing; about fifteen if the
    /// words are in memory.
    static func find(
        in root: borrowing Directory,
        _ mapping: SharedMapping,
        isWritable: Bool
    ) throws(Errno) -> Finding {
        guard let file = try open(root, isWritable ? .readWrite : .readOnly) else { return .nothing }
        let status = try file.status()
        // Two directories have it: one is a copy of the other (`cp -al`). Neither may use it any more.
        if status.linkCount > 1 { return .nothing }
        if mapping == .memory { return try findWords(named: file, status, in: root, isWritable: isWritable) }
        guard status.size == ControlLayout.byteCount else { return .nothing }
        // A copy may have holes. (With a compressing file system nothing is missing, and this has no effect.)
        if isWritable, status.allocatedSize < ControlLayout.byteCount {
            try file.allocate(ControlLayout.byteCount)
        }
        do throws(Errno) {
            let words = try map(file, isWritable: isWritable)
            let birthTime = file.birthTime
            let control = ControlFile(words, status.identity, birthTime: birthTime, memory: nil, namedBy: nil)
            return control.isOfThisLayout ? .found(control) : .nothing
        } catch {
            if error == .noDevice { return .refused }
            throw error
        }
    }

    /// Opens the control file; returns nil if it is missing or not a file.
    static func open(_ root: borrowing Directory, _ flags: OpenFlags) throws(Errno) -> FileDescriptor? {
        do throws(Errno) {
            return try root.open(StoreLayout.control, flags)
        } catch {
            if error == .noEntry || error.isNotRegularFile { return nil }
            throw error
        }
    }

    private static func findWords(
        named file: consuming FileDescriptor,
        _ status: FileStatus,
        in root: borrowing Directory,
        isWritable: Bool
    ) throws(Errno) -> Finding {
        guard let pointer = try ControlPointer(in: file) else { return .nothing }
        // Before looking for the words: a process that gets the lock exclusively may assume that no process uses them.
        try file.lock(.shared, until: .now + ControlPointer.patience)
        guard let words = try pointer.open(isWritable: isWritable, owner: status.owner) else {
            let present = try root.presentStatus(of: StoreLayout.control)
            // Replaced just now, by a file that can be found.
            if present?.identity != status.identity {
                return try find(in: root, .memory, isWritable: isWritable)
            }
            return .unreachable(status.identity)
        }
        // The mapping keeps the open file, and so the lock on it.
        let mapping = try map(words, isWritable: isWritable)
        let birthTime = file.birthTime
        let memory = (pointer: pointer, identity: try words.status().identity)
        let control = ControlFile(
            mapping,
            status.identity,
            birthTime: birthTime,
            memory: memory,
            namedBy: file
        )
        let seal = ControlMaking.pointerSeal(of: status.identity, birthTime: birthTime)
        return control.isOfThisLayout && control.words.load(.pointerSeal) == seal ? .found(control) : .nothing
    }

    static func map(_ file: borrowing FileDescriptor, isWritable: Bool) throws(Errno) -> MappedFile {
        try MappedFile(mapping: file, wordCount: ControlLayout.wordCount, isWritable: isWritable)
    }

    /// Marks the file at the path as superseded for all its users, even if this process can't use the file.
    ///
    /// The state has the same place in every layout. `mapped` is the file that this process has mapped. A file that has the
    /// words itself is written by a system call: a store into its mapping might need room.
    ///
    /// - Returns: The file if its users can't be notified; no other process uses it as long as the caller holds it.
    /// - Throws: ``Errno/wouldBlock`` if another process uses words that this process can't see.
    static func retire(in root: borrowing Directory, _ mapped: ControlFile?) throws(Errno) -> FileDescriptor?
    {
        guard let file = try open(root, .readWrite) else { return nil }
        let status = try file.status()
        guard status.kind == .regular else { return nil }
        guard let pointer = try ControlPointer(in: file) else {
            try markSuperseded(file, size: status.size)
            return nil
        }
        if let mapped, mapped.identity == status.identity, mapped.isWritable {
            // All users of the words that this file names have the same words mapped.
            mapped.supersede()
            return nil
        }
        if let words = try pointer.open(isWritable: true, owner: status.owner) {
            let seal = ControlMaking.pointerSeal(of: status.identity, birthTime: file.birthTime)
            let mapping = try map(words, isWritable: true)
            if mapping.words.load(.pointerSeal) == seal {
                mapping.words.store(ControlState.superseded.rawValue, at: .state)
                pointer.remove()
                return nil
            }
        }
        guard try file.tryLock(.exclusive, until: .now + exclusivePatience) else { throw .wouldBlock }
        return file
    }

    /// How long to wait for the exclusive lock.
    ///
    /// A process that looks for the words holds the lock for microseconds, a process that uses them for as long as the cache
    /// is open.
    private static let exclusivePatience: Duration = .milliseconds(20)

    /// Marks a file that has the words itself as superseded.
    private static func markSuperseded(_ file: borrowing FileDescriptor, size: Int64) throws(Errno) {
        let offset = ControlWord.state.rawValue * 8
        guard size >= offset + 8 else { return }
        // Any other file was never mapped by a cache.
        guard try ControlVersion.isControl(file) || size == ControlLayout.byteCount else { return }
        try FileSizeLimit.check(offset + 8)
        var word: [UInt8] = []
        word.append(ControlState.superseded.rawValue, width: 8)
        try file.write(word.span, at: offset)
    }

    /// Returns whether other processes that open the control file find the same words.
    ///
    /// No system call, one if the words are in memory.
    func isReachable() throws(Errno) -> Bool {
        guard let memory else { return true }
        return try memory.pointer.leads(to: memory.identity)
    }

    /// Whether the words are in memory and not in the file.
    var isInMemory: Bool { memory != nil }

    private var isOfThisLayout: Bool {
        words.load(.magic) == ControlLayout.magic
            && words.load(.version) == ControlLayout.version
            && words.load(.size) == UInt64(ControlLayout.byteCount)
            && state != nil
    }

    /// The words, valid as long as this object exists.
    var words: MappedWords { mapping.words }

    /// Unmaps the file; the lock on the file that names it is released with the last reference to this object.
    ///
    /// - Returns: The mapping that keeps the address of ``words`` reserved. From now on their state is superseded.
    func retire() -> MappedFile {
        mapping.detach(leaving: ControlState.superseded.rawValue, at: ControlWord.state.rawValue)
        return mapping
    }

    var isWritable: Bool { mapping.isWritable }

    /// The state; nil if the word has no value that this layout defines.
    var state: ControlState? { ControlState(rawValue: words.load(.state)) }

    func setState(_ state: ControlState) {
        words.store(state.rawValue, at: .state)
    }

    /// Marks the filter as complete: all entries were added to it since the file was ready.
    ///
    /// The filter is valid from now on, unless another file has replaced this one meanwhile.
    func completeFilter() { words.store(filterSeal, at: .filterSeal) }

    /// Marks the file as superseded for all processes that have it mapped: writers look for another one, and no value in
    /// memory is valid by it.
    ///
    /// Words in memory lose their name: if `control` was removed, no other process would find them.
    func supersede() {
        guard isWritable else { return }
        setState(.superseded)
        memory?.pointer.remove()
    }
}
