// SPDX-License-Identifier: Apache-2.0

import Platform

/// One control file, mapped: what the processes of a cache tell each other through memory.
///
/// It has all its blocks before anybody maps it and is never truncated: else a full disk would end
/// its users with SIGBUS. Where even that does not keep it from doing so, the words are in memory, and the file names them
/// (``ControlPointer``). What does not look like one is replaced, as a new inode, under the `format` lock.
final class ControlFile: Sendable {
    /// How far a control file is; a word in it.
    enum State: UInt64 {
        /// Writers must use it, but somebody may still be publishing who has not seen it: nobody may hold
        /// values in memory yet.
        case forming = 1
        /// Every writer uses it.
        case ready = 2
        /// Another one takes its place.
        case superseded = 3
    }

    /// Where the words are, if not in the file itself.
    private struct Memory: ~Copyable {
        let pointer: ControlPointer
        let identity: FileStatus.Identity
        /// The file that names them, with a shared lock.
        let file: FileDescriptor
    }

    private let mapping: MappedFile
    private let memory: Memory?
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
        memory: consuming Memory?
    ) {
        self.mapping = mapping
        self.memory = memory
        self.identity = identity
        self.birthTime = birthTime
        filterSeal = Self.filterSeal(of: identity, birthTime: birthTime)
    }

    private static func filterSeal(of identity: FileStatus.Identity, birthTime: Int64) -> UInt64 {
        BootIdentity.current.map { seal(of: identity, birthTime: birthTime, boot: $0) } ?? 0
    }

    /// What words in memory say of the file that names them; they end with the boot.
    private static func pointerSeal(of identity: FileStatus.Identity, birthTime: Int64) -> UInt64 {
        seal(of: identity, birthTime: birthTime, boot: (0, 0))
    }

    /// With the time of its birth, as the number of an inode that is gone is given to the next one, on ext4 at once.
    private static func seal(
        of identity: FileStatus.Identity,
        birthTime: Int64,
        boot: (UInt64, UInt64)
    ) -> UInt64 {
        let birth = UInt64(bitPattern: birthTime)
        var hash = SHA256()
        for number in [boot.0, boot.1, identity.device, identity.inode, birth] {
            let bytes = InlineArray<8, UInt8> { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
            hash.update(bytes.span)
        }
        return Digest(bytes: hash.finalize()).word(0) | 1
    }

    /// What there is at the control file's path.
    enum Finding {
        case found(ControlFile)
        /// Nothing.
        case missing
        /// Something that is no control file of this layout.
        case unusable
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
        let file: FileDescriptor
        do throws(Errno) {
            file = try open(in: root, isWritable: isWritable)
        } catch {
            if error == .noEntry { return .missing }
            if error.tellsOfNoFile { return .unusable }
            throw error
        }
        let status = try file.status()
        if mapping == .memory { return try findWords(named: file, status, in: root, isWritable: isWritable) }
        guard status.size == ControlLayout.byteCount else { return .unusable }
        // A copy may have holes. (Where the file system compresses, nothing is missing and nothing happens.)
        if isWritable, status.allocatedSize < ControlLayout.byteCount {
            try file.allocate(ControlLayout.byteCount)
        }
        do throws(Errno) {
            let words = try MappedFile(
                mapping: file,
                wordCount: ControlLayout.wordCount,
                isWritable: isWritable
            )
            let control = ControlFile(words, status.identity, birthTime: file.birthTime, memory: nil)
            return control.isOfThisLayout ? .found(control) : .unusable
        } catch {
            if error == .noDevice { return .refused }
            throw error
        }
    }

    private static func findWords(
        named file: consuming FileDescriptor,
        _ status: FileStatus,
        in root: borrowing Directory,
        isWritable: Bool
    ) throws(Errno) -> Finding {
        guard let pointer = try ControlPointer(in: file) else { return .unusable }
        // Before the words are looked for: who gets it exclusively may take it that nobody has them.
        try file.lock(.shared, until: .now + ControlPointer.patience)
        guard let words = try pointer.open(isWritable: isWritable, owner: status.owner) else {
            let present = try ifExists { () throws(Errno) in try root.status(of: StoreLayout.control).identity
            }
            // Replaced just now: by one that can be found.
            if present != status.identity { return try find(in: root, .memory, isWritable: isWritable) }
            return .unreachable(status.identity)
        }
        // The mapping keeps the open file, and so the lock on it.
        let mapping = try MappedFile(
            mapping: words,
            wordCount: ControlLayout.wordCount,
            isWritable: isWritable
        )
        let birthTime = file.birthTime
        let identity = try words.status().identity
        let control = ControlFile(
            mapping,
            status.identity,
            birthTime: birthTime,
            memory: Memory(pointer: pointer, identity: identity, file: file)
        )
        return control.isOfThisLayout && control.isOfThisPointer ? .found(control) : .unusable
    }

    private static func open(
        in root: borrowing Directory,
        isWritable: Bool
    ) throws(Errno) -> FileDescriptor {
        try root.open(StoreLayout.control, isWritable ? .readWrite : .readOnly)
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
        let file: FileDescriptor
        do throws(Errno) {
            file = try open(in: root, isWritable: true)
        } catch {
            if error == .noEntry || error.tellsOfNoFile { return nil }
            throw error
        }
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
            let seal = pointerSeal(of: status.identity, birthTime: file.birthTime)
            let mapping = try MappedFile(mapping: words, wordCount: ControlLayout.wordCount, isWritable: true)
            if mapping.words.load(ControlLayout.pointerSeal) == seal {
                mapping.words.store(State.superseded.rawValue, at: ControlLayout.stateIndex)
                pointer.remove()
                return nil
            }
        }
        do throws(Errno) {
            try file.lock(.exclusive, until: .now + exclusivePatience)
        } catch {
            throw error == .timedOut ? .wouldBlock : error
        }
        return file
    }

    /// Who looks for the words holds the lock for microseconds; who has them, as long as the cache is open.
    private static let exclusivePatience: Duration = .milliseconds(20)

    /// Of a file that has the words itself.
    private static func markSuperseded(_ file: borrowing FileDescriptor, size: Int64) throws(Errno) {
        let offset = ControlLayout.stateIndex * 8
        guard size >= offset + 8 else { return }
        // Anything else was never mapped by a cache.
        let isOurs = try file.read(8) == bytes(of: ControlLayout.magic)
        guard isOurs || size == ControlLayout.byteCount else { return }
        try FileSizeLimit.check(offset + 8)
        try file.write(bytes(of: State.superseded.rawValue).span, at: offset)
    }

    private static func bytes(of word: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: word.littleEndian >> (8 * UInt64($0))) }
    }

    /// Makes an empty file the control file of the cache at `path`, and has it published; where the cache `isEmpty`, its
    /// filter is complete.
    static func make(
        in file: borrowing FileDescriptor,
        _ mapping: SharedMapping,
        of path: String,
        state: State,
        isEmpty: Bool,
        now: Timestamp,
        publish: () throws(Errno) -> Void
    ) throws(Errno) {
        let identity = try file.status().identity
        let seal = isEmpty ? filterSeal(of: identity, birthTime: file.birthTime) : 0
        guard mapping == .memory else {
            try file.allocate(ControlLayout.byteCount)
            try initialize(file, state, filterSeal: seal, pointerSeal: 0, now)
            return try publish()
        }
        let pointer = ControlPointer()
        let words = try pointer.make(for: path)
        do throws(Errno) {
            let own = pointerSeal(of: identity, birthTime: file.birthTime)
            try initialize(words, state, filterSeal: seal, pointerSeal: own, now)
            try pointer.write(to: file)
            try publish()
        } catch {
            pointer.remove()
            throw error
        }
        words.close()
    }

    /// Fills in the words of a file that has its blocks.
    ///
    /// The version of each generation starts with the milliseconds since 1970, so that a file that takes
    /// another's place does not repeat its words.
    private static func initialize(
        _ file: borrowing FileDescriptor,
        _ state: State,
        filterSeal: UInt64,
        pointerSeal: UInt64,
        _ now: Timestamp
    ) throws(Errno) {
        let mapping = try MappedFile(mapping: file, wordCount: ControlLayout.wordCount, isWritable: true)
        let words = mapping.words
        let milliseconds = UInt64(max(0, now.nanoseconds / 1_000_000))
        for index in 0..<ControlLayout.generationCount {
            words.store(
                GenerationWord(version: milliseconds).rawValue,
                at: ControlLayout.generations + index
            )
        }
        words.store(ControlLayout.version, at: ControlLayout.versionIndex)
        words.store(UInt64(ControlLayout.byteCount), at: ControlLayout.sizeIndex)
        words.store(state.rawValue, at: ControlLayout.stateIndex)
        words.store(UInt64(bitPattern: now.nanoseconds), at: ControlLayout.countedSince)
        // Made ready at once, it is that of an empty cache, whose usage is known.
        words.store(state == .ready ? 1 : 0, at: ControlLayout.isUsageCounted)
        words.store(filterSeal, at: ControlLayout.filterSeal)
        words.store(pointerSeal, at: ControlLayout.pointerSeal)
        words.store(ControlLayout.magic, at: ControlLayout.magicIndex)
        withExtendedLifetime(mapping) {}
    }

    private var isOfThisPointer: Bool {
        words.load(ControlLayout.pointerSeal) == Self.pointerSeal(of: identity, birthTime: birthTime)
    }

    /// Whether others who come find the same words.
    ///
    /// No system call, one where they are in memory.
    func isReachable() throws(Errno) -> Bool {
        switch memory {
        case .none: true
        case .some(let memory): try memory.pointer.leads(to: memory.identity)
        }
    }

    /// Whether the words are in memory and not in the file.
    var isInMemory: Bool {
        switch memory {
        case .none: false
        case .some: true
        }
    }

    private var isOfThisLayout: Bool {
        words.load(ControlLayout.magicIndex) == ControlLayout.magic
            && words.load(ControlLayout.versionIndex) == ControlLayout.version
            && words.load(ControlLayout.sizeIndex) == UInt64(ControlLayout.byteCount)
            && state != nil
    }

    /// Valid as long as this object lives.
    var words: MappedWords { mapping.words }

    var isWritable: Bool { mapping.isWritable }

    /// nil for a word that nobody has written who knows this layout.
    var state: State? { State(rawValue: words.load(ControlLayout.stateIndex)) }

    func setState(_ state: State) {
        words.store(state.rawValue, at: ControlLayout.stateIndex)
    }

    /// Tells everybody who has it mapped that it counts no more: writers look for another one, and no value
    /// in memory is valid by it.
    ///
    /// Words in memory lose their name: where `control` was removed nobody else would find them.
    func supersede() {
        guard isWritable else { return }
        setState(.superseded)
        switch memory {
        case .none: break
        case .some(let memory): memory.pointer.remove()
        }
    }
}
