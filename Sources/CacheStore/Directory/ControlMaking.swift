// SPDX-License-Identifier: Apache-2.0

import Platform

/// How a control file begins, and the seals by which it is told from its copies and from those before it.
enum ControlMaking {
    /// Makes an empty file the control file of the cache at `path`, and has it published.
    ///
    /// It is forming, unless `publish` says that it is that of an empty cache, which nobody could write without it: then
    /// it is ready at once, with a complete filter.
    ///
    /// - Parameter rules: what it says of the rules before anybody can find it: without that, what was removed by one would
    ///   be there again.
    /// - Parameter remote: the same of stores on other machines.
    static func make(
        in file: borrowing FileDescriptor,
        _ mapping: SharedMapping,
        of path: String,
        _ rules: RuleMarks,
        _ remote: RemoteMarks = RemoteMarks(),
        publish: () throws(Errno) -> Bool
    ) throws(Errno) {
        let status = try file.status()
        let identity = status.identity
        let seal = filterSeal(of: identity, birthTime: file.birthTime)
        guard mapping == .memory else {
            try file.allocate(ControlLayout.byteCount)
            let mapping = try initialize(file, rules, remote, pointerSeal: 0)
            if try publish() { complete(mapping, filterSeal: seal) }
            return
        }
        let pointer = ControlPointer()
        let words = try pointer.make(for: path)
        do throws(Errno) {
            // Nobody takes words for the cache's that belong to another user than the file that names them.
            if status.owner != CurrentProcess.effectiveUser {
                try words.setOwner(status.owner, group: status.group)
            }
            let own = pointerSeal(of: identity, birthTime: file.birthTime)
            let mapping = try initialize(words, rules, remote, pointerSeal: own)
            try pointer.write(to: file)
            if try publish() { complete(mapping, filterSeal: seal) }
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
        _ rules: RuleMarks,
        _ remote: RemoteMarks,
        pointerSeal: UInt64
    ) throws(Errno) -> MappedFile {
        let mapping = try MappedFile(mapping: file, wordCount: ControlLayout.wordCount, isWritable: true)
        let (words, now) = (mapping.words, Timestamp.now)
        let milliseconds = UInt64(max(0, now.nanoseconds / 1_000_000))
        for index in 0..<ControlLayout.generationCount {
            words.store(GenerationWord(version: milliseconds).rawValue, at: ControlLayout.generations + index)
        }
        words.store(ControlLayout.version, at: .version)
        words.store(UInt64(ControlLayout.byteCount), at: .size)
        words.store(ControlState.forming.rawValue, at: .state)
        words.store(UInt64(bitPattern: now.nanoseconds), at: .countedSince)
        words.store(pointerSeal, at: .pointerSeal)
        words.store(UInt64(rules.latest.milliseconds), at: .latestRule)
        words.store(rules.version, at: .rulesVersion)
        words.store(remote.notes.rawValue, at: .remoteNotes)
        words.store(UInt64(max(0, remote.barrier?.milliseconds ?? 0)), at: .remoteBarrier)
        words.store(ControlLayout.magic, at: .magic)
        return mapping
    }

    /// Whoever has written has noted it there, and nothing was written before: the filter and the usage are whole, and so
    /// is the latest time of creation.
    private static func complete(_ mapping: MappedFile, filterSeal: UInt64) {
        let words = mapping.words
        words.store(1, at: .isUsageCounted)
        // Where one was written meanwhile that takes some, it is not said that none does.
        _ = words.replace(0, by: 1, at: .entriesWithSpace)
        while true {
            let latest = words.load(.latestCreated)
            if words.replace(latest, by: latest | 1, at: .latestCreated) { break }
        }
        words.store(filterSeal, at: .filterSeal)
        // Not where another one has taken its place meanwhile.
        _ = words.replace(ControlState.forming.rawValue, by: ControlState.ready.rawValue, at: .state)
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
