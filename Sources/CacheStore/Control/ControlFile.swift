// SPDX-License-Identifier: Apache-2.0

import Platform

/// One control file, mapped: what the processes of a cache tell each other through memory.
///
/// It has all its blocks before anybody maps it and is never truncated: else a full disk would end
/// its users with SIGBUS. Where even that does not keep it from doing so, the words are in memory, and the file names them
/// (``ControlPointer``). What does not look like one is replaced, as a new inode, under the `format` lock.
final class ControlFile: Sendable {
    private let mapping: MappedFile
    /// Where the words are, if not in the file itself.
    private let memory: (pointer: ControlPointer, identity: FileStatus.Identity)?
    /// The file that names them then, with a shared lock.
    private let naming: FileDescriptor?
    /// Which file this is: the one at the control file's path.
    let identity: FileStatus.Identity
    /// What says in the file that its filter of keys is complete: of this boot and this inode, so that neither
    /// what a power cut left nor a copy is taken for it; 0 where the boot can't be told.
    let filterSeal: UInt64
    /// When the file was made, ns since 1970; 0 where the file system does not say.
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

    /// What there is at the control file's path.
    enum Finding {
        case found(ControlFile)
        /// Nothing, or something that is no control file of this layout.
        case nothing
        /// The name of words that this process can't see.
        case unreachable(FileStatus.Identity)
        /// The file system does not map files.
        case refused
    }

    /// Maps the control file of `root`.
    ///
    /// Five system calls: `openat2`, `fstat`, `statx`, `mmap`, `close`; one where it is missing; some fifteen where the
    /// words are in memory.
    static func find(
        in root: borrowing Directory,
        _ mapping: SharedMapping,
        isWritable: Bool
    ) throws(Errno) -> Finding {
        guard let file = try open(root, isWritable ? .readWrite : .readOnly) else { return .nothing }
        let status = try file.status()
        // Two directories have it: one is a copy of the other (`cp -al`). It is neither's any more.
        if status.linkCount > 1 { return .nothing }
        if mapping == .memory { return try findWords(named: file, status, in: root, isWritable: isWritable) }
        guard status.size == ControlLayout.byteCount else { return .nothing }
        // A copy may have holes. (Where the file system compresses, nothing is missing and nothing happens.)
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

    /// nil where there is nothing, or something other than a file.
    static func open(_ root: borrowing Directory, _ flags: OpenFlags) throws(Errno) -> FileDescriptor? {
        do throws(Errno) {
            return try root.open(StoreLayout.control, flags)
        } catch {
            if error == .noEntry || error.tellsOfNoFile { return nil }
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
        // Before the words are looked for: who gets it exclusively may take it that nobody has them.
        try file.lock(.shared, until: .now + ControlPointer.patience)
        guard let words = try pointer.open(isWritable: isWritable, owner: status.owner) else {
            let present = try root.presentStatus(of: StoreLayout.control)
            // Replaced just now: by one that can be found.
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

    /// Tells whoever uses the file at the path that it counts no more, also where this process can't use it: the state
    /// has the same place in every layout.
    ///
    /// `mapped` is what this process has mapped. No store into a mapped file is made: that might need room.
    ///
    /// - Returns: where nobody can be told, the file, which nobody else uses as long as the caller has it.
    /// - Throws: ``Errno/wouldBlock`` where somebody uses words that this process can't see.
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
            // Whoever uses what this file names has the same words.
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

    /// A process that looks for the words holds the lock for microseconds; one that has them, as long as the cache is open.
    private static let exclusivePatience: Duration = .milliseconds(20)

    /// Of a file that has the words itself.
    private static func markSuperseded(_ file: borrowing FileDescriptor, size: Int64) throws(Errno) {
        let offset = ControlWord.state.rawValue * 8
        guard size >= offset + 8 else { return }
        // Anything else was never mapped by a cache.
        guard try ControlVersion.isControl(file) || size == ControlLayout.byteCount else { return }
        try FileSizeLimit.check(offset + 8)
        var word: [UInt8] = []
        word.append(ControlState.superseded.rawValue, width: 8)
        try file.write(word.span, at: offset)
    }

    /// Whether others who come find the same words.
    ///
    /// No system call, one where they are in memory.
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

    /// Valid as long as this object lives.
    var words: MappedWords { mapping.words }

    /// Lets go of the file: it, and the lock on the file that names it, go with the last reference to this object.
    ///
    /// - Returns: what keeps the address of ``words`` taken; they say from now on that they are superseded.
    func retire() -> MappedFile {
        mapping.detach(leaving: ControlState.superseded.rawValue, at: ControlWord.state.rawValue)
        return mapping
    }

    var isWritable: Bool { mapping.isWritable }

    /// nil for a word that nobody has written who knows this layout.
    var state: ControlState? { ControlState(rawValue: words.load(.state)) }

    func setState(_ state: ControlState) {
        words.store(state.rawValue, at: .state)
    }

    /// All entries were noted in the filter since the file was ready: it counts from now on, if another file has not
    /// taken this one's place meanwhile.
    func completeFilter() { words.store(filterSeal, at: .filterSeal) }

    /// Tells every process that has it mapped that it no longer counts: writers look for another one, and no value
    /// in memory is valid by it.
    ///
    /// Words in memory lose their name: where `control` was removed nobody else would find them.
    func supersede() {
        guard isWritable else { return }
        setState(.superseded)
        memory?.pointer.remove()
    }
}
