// SPDX-License-Identifier: Apache-2.0

import Platform

/// How a control file begins, and the seals by which it is told from its copies and from those before it.
enum ControlMaking {
    /// Makes an empty file the control file of the cache at `path`, and has it published; one that is ready at once is
    /// that of an empty cache, and its filter is complete.
    static func make(
        in file: borrowing FileDescriptor,
        _ mapping: SharedMapping,
        of path: String,
        state: ControlState,
        publish: () throws(Errno) -> Void
    ) throws(Errno) {
        let identity = try file.status().identity
        let seal = state == .ready ? filterSeal(of: identity, birthTime: file.birthTime) : 0
        guard mapping == .memory else {
            try file.allocate(ControlLayout.byteCount)
            try initialize(file, state, filterSeal: seal, pointerSeal: 0)
            return try publish()
        }
        let pointer = ControlPointer()
        let words = try pointer.make(for: path)
        do throws(Errno) {
            let own = pointerSeal(of: identity, birthTime: file.birthTime)
            try initialize(words, state, filterSeal: seal, pointerSeal: own)
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
        _ state: ControlState,
        filterSeal: UInt64,
        pointerSeal: UInt64
    ) throws(Errno) {
        let mapping = try MappedFile(mapping: file, wordCount: ControlLayout.wordCount, isWritable: true)
        let (words, now) = (mapping.words, Timestamp.now)
        let milliseconds = UInt64(max(0, now.nanoseconds / 1_000_000))
        for index in 0..<ControlLayout.generationCount {
            words.store(GenerationWord(version: milliseconds).rawValue, at: ControlLayout.generations + index)
        }
        words.store(ControlLayout.version, at: .version)
        words.store(UInt64(ControlLayout.byteCount), at: .size)
        words.store(state.rawValue, at: .state)
        words.store(UInt64(bitPattern: now.nanoseconds), at: .countedSince)
        // Made ready at once, it is that of an empty cache, whose usage is known.
        words.store(state == .ready ? 1 : 0, at: .isUsageCounted)
        words.store(filterSeal, at: .filterSeal)
        words.store(pointerSeal, at: .pointerSeal)
        words.store(ControlLayout.magic, at: .magic)
        withExtendedLifetime(mapping) {}
    }

    static func filterSeal(of identity: FileStatus.Identity, birthTime: Int64) -> UInt64 {
        BootIdentity.current.map { seal(of: identity, birthTime: birthTime, boot: $0) } ?? 0
    }

    /// What words in memory say of the file that names them; they end with the boot.
    static func pointerSeal(of identity: FileStatus.Identity, birthTime: Int64) -> UInt64 {
        seal(of: identity, birthTime: birthTime, boot: (0, 0))
    }

    /// With the time of its birth, as the number of an inode that is gone is given to the next one, on ext4 at once.
    private static func seal(
        of identity: FileStatus.Identity,
        birthTime: Int64,
        boot: (UInt64, UInt64)
    ) -> UInt64 {
        let birth = UInt64(bitPattern: birthTime)
        var bytes: [UInt8] = []
        for number in [boot.0, boot.1, identity.device, identity.inode, birth] {
            bytes.append(number, width: 8)
        }
        return Digest(of: bytes.span).word(0) | 1
    }
}
