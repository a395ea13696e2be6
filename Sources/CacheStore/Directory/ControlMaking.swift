// SPDX-License-Identifier: Apache-2.0

import Platform

/// The initial contents of a control file, and the seals that distinguish it from its copies and its predecessors.
enum ControlMaking {
    /// Turns an empty file into the control file of the cache at `path`, and publishes it.
    ///
    /// The file is `forming`, unless `publish` returns true: the cache is empty, and no process could write to it without
    /// the file. Then the file is ready at once, with a complete filter.
    ///
    /// - Parameter rules: The state of the rules. It is set before any process can find the file: otherwise values that a
    ///   rule has removed would reappear.
    /// - Parameter remote: The state of remote stores, which is set at the same time.
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
        var pointer = ControlPointer()
        let words = try makeWords(for: path, &pointer)
        do throws(Errno) {
            // Processes reject words whose owner differs from the owner of the file that names them.
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

    /// How often words are created again because another process has deleted them.
    private static let attempts = 10

    /// Creates words, under another name if another process deletes them as an orphan before they are locked.
    private static func makeWords(
        for path: String,
        _ pointer: inout ControlPointer
    ) throws(Errno) -> FileDescriptor {
        for _ in 1..<attempts {
            do throws(Errno) {
                return try pointer.make(for: path)
            } catch {
                guard error == .noEntry else { throw error }
                pointer = ControlPointer()
            }
        }
        return try pointer.make(for: path)
    }

    /// Initializes the words of a file whose blocks are allocated.
    ///
    /// The version of each generation starts at the milliseconds since 1970, so that a file does not repeat the words of
    /// the file that it replaces.
    private static func initialize(
        _ file: borrowing FileDescriptor,
        _ rules: RuleMarks,
        _ remote: RemoteMarks,
        pointerSeal: UInt64
    ) throws(Errno) -> MappedFile {
        let mapping = try MappedFile(mapping: file, wordCount: ControlLayout.wordCount, isWritable: true)
        let (words, now) = (mapping.words, Timestamp.now)
        let milliseconds = UInt64(max(0, now.nanoseconds / 1_000_000))
        words.store(
            GenerationWord(version: milliseconds).rawValue,
            in: ControlLayout.generations..<ControlLayout.generations + ControlLayout.generationCount
        )
        words.store(ControlLayout.version, at: .version)
        words.store(UInt64(ControlLayout.byteCount), at: .size)
        words.store(ControlState.forming.rawValue, at: .state)
        words.store(UInt64(bitPattern: now.nanoseconds), at: .countedSince)
        words.store(pointerSeal, at: .pointerSeal)
        words.store(UInt64(rules.latest.milliseconds), at: .latestRule)
        words.store(rules.version, at: .rulesVersion)
        words.store(remote.notesChanges ? 1 : 0, at: .notesChanges)
        words.store(remote.clock.rawValue, at: .clock)
        words.store(remote.cleared.rawValue, at: .cleared)
        words.store(ControlLayout.magic, at: .magic)
        return mapping
    }

    /// Marks the filter, the usage and the latest creation time as complete, and the file as ready.
    ///
    /// Nothing was written to the cache before, and every writer since then has recorded its write in the file.
    private static func complete(_ mapping: MappedFile, filterSeal: UInt64) {
        let words = mapping.words
        words.store(1, at: .isUsageCounted)
        // This has no effect if a record that takes space was written meanwhile.
        _ = words.replace(0, by: 1, at: .entriesWithSpace)
        while true {
            let latest = words.load(.latestCreated)
            if words.replace(latest, by: latest | 1, at: .latestCreated) { break }
        }
        words.store(filterSeal, at: .filterSeal)
        // This has no effect if another file has replaced this one meanwhile.
        _ = words.replace(ControlState.forming.rawValue, by: ControlState.ready.rawValue, at: .state)
        withExtendedLifetime(mapping) {}
    }

    static func filterSeal(of identity: FileStatus.Identity, birthTime: Int64) -> UInt64 {
        BootIdentity.current.map { seal(of: identity, birthTime: birthTime, boot: $0) } ?? 0
    }

    /// Returns the seal by which words in memory identify the file that names them.
    ///
    /// The seal does not depend on the boot, because the words do not outlive the boot.
    static func pointerSeal(of identity: FileStatus.Identity, birthTime: Int64) -> UInt64 {
        seal(of: identity, birthTime: birthTime, boot: (0, 0))
    }

    /// Returns a seal that includes the birth time, because the inode number of a deleted file is reused (on ext4, at
    /// once).
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
