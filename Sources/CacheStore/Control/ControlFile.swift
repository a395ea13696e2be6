// SPDX-License-Identifier: Apache-2.0

import Platform

/// A mapped control file: the memory that the processes of a cache share.
///
/// The file is an array of 64-bit words. All its blocks are allocated before any process maps it, and it is never
/// truncated: otherwise a store into the mapping could kill the process with SIGBUS if the disk is full. On file systems
/// where this does not prevent SIGBUS, the words are in a file in `/dev/shm`, and the control file contains the path of
/// that file (``ControlPointer``). An invalid control file is replaced by a new inode, under the `format` lock.
final class ControlFile: Sendable {
    private let mapping: MappedFile
    /// The location of the words if they are in memory; nil if they are in the control file itself.
    private let memory: (pointer: ControlPointer, identity: FileStatus.Identity)?
    /// The control file, open with a shared lock, if it names words in memory; otherwise nil.
    private let naming: FileDescriptor?
    /// The identity of the file at the control file's path.
    let identity: FileStatus.Identity
    /// The seal that marks the key filter in this file as complete; 0 if the boot can't be identified.
    ///
    /// The seal is valid for this boot and this inode only. So neither the remains of a file after a power cut nor a copy
    /// of the file counts as complete.
    let filterSeal: UInt64
    /// When the file was created, in ns since 1970; 0 if the file system does not report it.
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
        /// There is no file, the file is not a control file of this layout, or another directory contains a hard link to
        /// it.
        case nothing
        /// The file names words in memory that this process can't see.
        case unreachable(FileStatus.Identity)
        /// The file system can't map files.
        case refused
    }

    /// Maps the control file of `root`.
    ///
    /// Six system calls: `openat2`, `fstat` twice, `statx`, `mmap`, `close`; one if the file is missing; about fifteen if the
    /// words are in memory.
    static func find(
        in root: borrowing Directory,
        _ mapping: SharedMapping,
        isWritable: Bool
    ) throws(Errno) -> Finding {
        guard let file = try open(root, isWritable ? .readWrite : .readOnly) else { return .nothing }
        let status = try file.status()
        // A second hard link: one directory is a copy of the other (`cp -al`). Neither may use the file any longer.
        if status.linkCount > 1 { return .nothing }
        if mapping == .memory { return try findWords(named: file, status, in: root, isWritable: isWritable) }
        guard status.size == ControlLayout.byteCount else { return .nothing }
        // A copy may have holes; this fills them. (On a compressing file system no block is missing, and this has no
        // effect.)
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
        // Lock before looking for the words: a process that gets the exclusive lock may assume that no process uses them.
        try file.lock(.shared, until: .now + ControlPointer.patience)
        guard let words = try pointer.open(isWritable: isWritable, owner: status.owner) else {
            let present = try root.presentStatus(of: StoreLayout.control)
            // The control file was replaced meanwhile: look for the words of its replacement.
            if present?.identity != status.identity {
                return try find(in: root, .memory, isWritable: isWritable)
            }
            return .unreachable(status.identity)
        }
        // The mapping keeps the words' open file alive, and with it the shared lock on that file.
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
    /// The state is at the same offset in every layout. `mapped` is the control file that this process has mapped. If the
    /// file itself contains the words, the state is written by a system call: a store into a mapping might need a new
    /// block.
    ///
    /// - Returns: The exclusively locked file if its users can't be notified: no other process uses it as long as the
    ///   caller keeps it open. Otherwise nil.
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
            // All users of this control file have the same words mapped as this process.
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
    /// A process that only looks for the words holds the shared lock for microseconds; a process that uses them holds it as
    /// long as the cache is open.
    private static let exclusivePatience: Duration = .milliseconds(20)

    /// Marks a control file that contains the words itself as superseded.
    private static func markSuperseded(_ file: borrowing FileDescriptor, size: Int64) throws(Errno) {
        let offset = ControlWord.state.rawValue * 8
        guard size >= offset + 8 else { return }
        // No cache has ever mapped any other file.
        guard try ControlVersion.isControl(file) || size == ControlLayout.byteCount else { return }
        try FileSizeLimit.check(offset + 8)
        var word: [UInt8] = []
        word.append(ControlState.superseded.rawValue, width: 8)
        try file.write(word.span, at: offset)
    }

    /// Returns whether other processes that open the control file find the same words.
    ///
    /// No system call; one if the words are in memory.
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

    /// Replaces the mapped file by private memory, whose state is superseded.
    ///
    /// The lock on a control file that names words in memory is released with the last reference to this object.
    ///
    /// - Returns: The mapping, which keeps the address of ``words`` reserved.
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

    /// Marks the filter as complete: the caller has added all entries since the file became ready.
    ///
    /// The filter is valid from now on, unless another file has replaced this one meanwhile.
    func completeFilter() { words.store(filterSeal, at: .filterSeal) }

    /// Marks the file as superseded for all processes that have it mapped.
    ///
    /// Writers then look for another control file, and values that processes hold in memory under this file are no longer
    /// valid.
    ///
    /// If the words are in memory, this also unlinks their file: no other process could find it through `control` if that
    /// was removed.
    func supersede() {
        guard isWritable else { return }
        setState(.superseded)
        memory?.pointer.remove()
    }
}
