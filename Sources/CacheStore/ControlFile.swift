// SPDX-License-Identifier: Apache-2.0

import Platform

/// One control file, mapped: what the processes of a cache tell each other through memory.
///
/// It has all its blocks before anybody maps it and is never truncated: else a full disk would end
/// its users with SIGBUS. What does not look like one is replaced, as a new inode, under the `format` lock.
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

    private let mapping: MappedFile
    /// Which file this is.
    let identity: FileStatus.Identity
    /// What says in the file that its filter of keys is complete: of this boot and this inode, so that neither
    /// what a power cut left nor a copy is taken for it; 0 where the boot can't be told.
    let filterSeal: UInt64
    /// When the file was made, ns since 1970; 0 where the file system does not say.
    let birthTime: Int64

    private init(_ mapping: MappedFile, _ identity: FileStatus.Identity, birthTime: Int64) {
        self.mapping = mapping
        self.identity = identity
        self.birthTime = birthTime
        filterSeal = Self.filterSeal(of: identity, birthTime: birthTime)
    }

    /// With the time of its birth, as the number of an inode that is gone is given to the next one, on ext4 at once.
    private static func filterSeal(of identity: FileStatus.Identity, birthTime: Int64) -> UInt64 {
        guard let boot = BootIdentity.current else { return 0 }
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
        /// The file system does not map files.
        case refused
    }

    /// Maps the control file of `root`.
    ///
    /// Five system calls: `openat2`, `fstat`, `statx`, `mmap`, `close`; one where it is missing.
    static func find(in root: borrowing Directory, isWritable: Bool) throws(Errno) -> Finding {
        let file: FileDescriptor
        do throws(Errno) {
            file = try open(in: root, isWritable: isWritable)
        } catch {
            if error == .noEntry { return .missing }
            if error.tellsOfNoFile { return .unusable }
            throw error
        }
        let status = try file.status()
        guard status.kind == .regular, status.size == ControlLayout.byteCount else { return .unusable }
        // A copy may have holes. (Where the file system compresses, nothing is missing and nothing happens.)
        if isWritable, status.allocatedSize < ControlLayout.byteCount {
            try file.allocate(ControlLayout.byteCount)
        }
        do throws(Errno) {
            let control = ControlFile(
                try MappedFile(mapping: file, wordCount: ControlLayout.wordCount, isWritable: isWritable),
                status.identity,
                birthTime: file.birthTime
            )
            return control.isOfThisLayout ? .found(control) : .unusable
        } catch {
            if error == .noDevice { return .refused }
            throw error
        }
    }

    private static func open(
        in root: borrowing Directory,
        isWritable: Bool
    ) throws(Errno) -> FileDescriptor {
        try root.open(StoreLayout.control, [isWritable ? .readWrite : .readOnly, .nonBlocking])
    }

    /// Tells whoever has the file at the path mapped that it counts no more, also where this process can't use
    /// it: the state has the same place in every layout.
    static func supersede(in root: borrowing Directory) throws(Errno) {
        do throws(Errno) {
            let file = try open(in: root, isWritable: true)
            let status = try file.status()
            let count = ControlLayout.stateIndex + 1
            guard status.kind == .regular, status.size >= count * 8 else { return }
            try file.allocate(count * 8)
            let mapping = try MappedFile(mapping: file, wordCount: count, isWritable: true)
            // Anything else was never mapped by a cache.
            let isOurs = mapping.words.load(ControlLayout.magicIndex) == ControlLayout.magic
            guard isOurs || status.size == ControlLayout.byteCount else { return }
            mapping.words.store(State.superseded.rawValue, at: ControlLayout.stateIndex)
        } catch {
            if error != .noEntry, !error.tellsOfNoFile { throw error }
        }
    }

    /// Makes an empty file a control file; where it is that of a cache that `isEmpty`, its filter is complete.
    ///
    /// The version of each generation starts with the milliseconds since 1970, so that a file that takes
    /// another's place does not repeat its words.
    static func initialize(
        _ file: borrowing FileDescriptor,
        state: State,
        isEmpty: Bool,
        now: Timestamp
    ) throws(Errno) {
        let seal = isEmpty ? filterSeal(of: try file.status().identity, birthTime: file.birthTime) : 0
        try file.allocate(ControlLayout.byteCount)
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
        words.store(seal, at: ControlLayout.filterSeal)
        words.store(ControlLayout.magic, at: ControlLayout.magicIndex)
        withExtendedLifetime(mapping) {}
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
    func supersede() {
        if isWritable { setState(.superseded) }
    }
}
