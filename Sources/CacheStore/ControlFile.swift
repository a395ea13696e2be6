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

    private init(_ mapping: MappedFile, _ identity: FileStatus.Identity) {
        self.mapping = mapping
        self.identity = identity
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
    /// Four system calls: `openat2`, `fstat`, `mmap`, `close`; one where it is missing.
    static func find(in root: borrowing Directory, isWritable: Bool) throws(Errno) -> Finding {
        let file: FileDescriptor
        do throws(Errno) {
            file = try root.open(StoreLayout.control, [isWritable ? .readWrite : .readOnly, .nonBlocking])
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
                status.identity
            )
            return control.isOfThisLayout ? .found(control) : .unusable
        } catch {
            if error == .noDevice { return .refused }
            throw error
        }
    }

    /// Makes an empty file a control file.
    ///
    /// The version of each generation starts with the milliseconds since 1970, so that a file that takes
    /// another's place does not repeat its words.
    static func initialize(
        _ file: borrowing FileDescriptor,
        state: State,
        now: Timestamp
    ) throws(Errno) {
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
