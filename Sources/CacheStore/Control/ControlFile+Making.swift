// SPDX-License-Identifier: Apache-2.0

import Platform

extension ControlFile {
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
        let mapping = try map(file, isWritable: true)
        let (words, now) = (mapping.words, Timestamp.now)
        let milliseconds = UInt64(max(0, now.nanoseconds / 1_000_000))
        for index in 0..<ControlLayout.generationCount {
            words.store(
                GenerationWord(version: milliseconds).rawValue,
                at: ControlLayout.generations + index
            )
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
}

extension StoreDirectory {
    /// Opens the cache at `path`, with a control file where it is made.
    package convenience init(
        opening path: String,
        assuming capabilities: Capabilities? = nil
    ) throws(CacheError) {
        try self.init(opening: path, assuming: capabilities, control: ControlFile.setup)
    }
}

extension ControlFile {
    fileprivate static let setup = ControlSetup(
        make: { (file, mapping, path, publish) throws(Errno) in
            try make(in: file, mapping, of: path, state: .ready, publish: publish)
        },
        isControl: { (file) throws(Errno) in
            if try ControlVersion.isControl(file) { return true }
            return try ControlPointer(in: file) != nil
        }
    )
}
