// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The control file as a store has it mapped now, if it has one.
///
/// It can appear, when another process has made one, and be replaced. What was mapped once stays so until
/// this object goes: others may be looking at it.
package final class Control: Sendable {
    private struct State {
        var file: ControlFile?
        var retired: [ControlFile] = []
        /// The file system can't have one, for nobody.
        var isImpossible = false
    }

    let directory: StoreDirectory
    /// ``MappedWords/address`` of the file, 0 for none; the second only where it may be written.
    private let readable = Atomic<UInt>(0)
    private let writable = Atomic<UInt>(0)
    /// ``ControlFile/filterSeal`` of the file, 0 for none.
    private let filterSeal = Atomic<UInt64>(0)
    private let state = Locked(State())

    /// With nothing mapped yet.
    init(of directory: StoreDirectory) {
        self.directory = directory
    }

    /// The words of the file, to be read; nil where none is mapped.
    ///
    /// One load.
    var words: MappedWords? {
        unsafe MappedWords(address: readable.load(ordering: .acquiring), count: ControlLayout.wordCount)
    }

    /// The same where they may also be changed.
    var writableWords: MappedWords? {
        unsafe MappedWords(address: writable.load(ordering: .acquiring), count: ControlLayout.wordCount)
    }

    /// The same unless another file takes its place.
    private var countingWords: MappedWords? {
        guard let words = writableWords,
            words.load(ControlLayout.stateIndex) != ControlFile.State.superseded.rawValue
        else { return nil }
        return words
    }

    /// The filter of keys, if it counts at this moment; see ``KeyFilter``.
    ///
    /// Four loads. Where another file is being mapped just now, the seal is of one and the words are of the
    /// other: then they differ, and nothing is answered.
    var filter: KeyFilter? {
        guard let words, words.load(ControlLayout.stateIndex) == ControlFile.State.ready.rawValue else {
            return nil
        }
        let seal = filterSeal.load(ordering: .acquiring)
        guard seal != 0, words.load(ControlLayout.filterSeal) == seal else { return nil }
        return KeyFilter(in: words)
    }

    /// Begins to complete the filter, to be followed by noting all entries; nil where there is none to
    /// complete.
    ///
    /// Only of a file that is ready already: then whatever was published without it is there to be listed.
    var beginningOfFilter: FilterCompletion? {
        guard let file, file.isWritable, file.state == .ready, file.filterSeal != 0 else { return nil }
        return FilterCompletion(of: file)
    }

    /// Whether the directory can have no control file: then writers do without, and readers look at the
    /// record each time.
    var isImpossible: Bool {
        directory.capabilities.sharedMapping == .none || state.withLock { $0.isImpossible }
    }

    /// The file that is mapped.
    var file: ControlFile? { state.withLock { $0.file } }

    /// Whether there is nothing left to do for the file that is mapped.
    var isSettled: Bool { isImpossible || file?.state == .ready }

    /// What was found at the path.
    enum Look {
        case mapped
        /// None that can be used.
        case nothing
        /// One whose words this process can't see.
        case unreachable
    }

    /// Maps the file that the path names now, if it is another one than the one mapped; false where it names
    /// none that can be used.
    ///
    /// - Throws: why it can't be mapped although it is there.
    func mapPresent(isWritable: Bool) throws(StoreError) -> Bool {
        let found = try look(isWritable: isWritable)
        if found == .unreachable { throw unreachable }
        return found == .mapped
    }

    /// The same, and leaves it to the caller what to do where the words are out of sight.
    func look(isWritable: Bool) throws(StoreError) -> Look {
        let mapping = directory.capabilities.sharedMapping
        if mapping == .none { return .nothing }
        let finding = try describing("map the control file", path) { () throws(Errno) in
            try ControlFile.find(in: directory.root, mapping, isWritable: isWritable)
        }
        switch finding {
        case .found(let file):
            guard file.state != .superseded else { return .nothing }
            adopt(file)
            return .mapped
        case .missing, .unusable:
            return .nothing
        case .unreachable(let identity):
            // Whoever uses them has the words that are mapped here.
            return file?.identity == identity ? .nothing : .unreachable
        case .refused:
            state.withLock { $0.isImpossible = true }
            return .nothing
        }
    }

    var path: String { "\(directory.path)/\(StoreLayout.control)" }

    private func adopt(_ file: ControlFile) {
        let replaced = state.withLock { (state) -> ControlFile? in
            let present = state.file
            // Replaced since it was found: another thread may have the later one already.
            if file.state == .superseded { return nil }
            // Another thread was first.
            if let present, present.identity == file.identity, present.isWritable || !file.isWritable {
                return nil
            }
            state.file = file
            if let present { state.retired.append(present) }
            filterSeal.store(file.filterSeal, ordering: .releasing)
            readable.store(file.words.address, ordering: .releasing)
            writable.store(file.isWritable ? file.words.address : 0, ordering: .releasing)
            return present
        }
        // Whoever else still has it mapped must not go on with it either.
        if let replaced, replaced.identity != file.identity { replaced.supersede() }
    }

    // MARK: Writing

    /// A writer's place in a word of the table.
    struct Writing {
        let words: MappedWords
        let index: Int
        /// The word before.
        let before: UInt64
    }

    /// Adds a writer to the word of `key`, and the key to the filter where the writer `publishes` an entry; the
    /// caller holds the entry's stripe.
    ///
    /// nil where there is no control file that anybody could hold values by: then nothing need be raised. A
    /// file that appears meanwhile counts only after its maker has had the stripe.
    ///
    /// No system call; four where the file has been replaced, one where there is none.
    ///
    /// - Throws: why it can't be mapped although it is there: to publish unnoticed would leave old values
    ///   in others' memory.
    func beginWriting(_ key: Digest, publishes: Bool = true) throws(StoreError) -> Writing? {
        if isImpossible { return nil }
        if let writing = add(key, publishes) { return writing }
        guard try mapPresent(isWritable: true) else { return nil }
        return add(key, publishes)
    }

    /// Has what ``beginWriting(_:publishes:)`` looks at fetched, which belongs to a key and so is in no cache.
    func prefetch(_ key: Digest) {
        guard let words = writableWords else { return }
        KeyFilter(in: words).prefetch(key)
        words.prefetch(ControlLayout.generations + Generations.index(of: key))
    }

    private func add(_ key: Digest, _ publishes: Bool) -> Writing? {
        guard let words = countingWords else { return nil }
        if publishes { KeyFilter(in: words).insert(key) }
        let index = Generations.index(of: key)
        let before = words.add(GenerationWord.begin, at: ControlLayout.generations + index)
        return Writing(words: words, index: index, before: before)
    }

    /// Takes the writer off and raises the version.
    ///
    /// The generation by which the value just written may be held: nil where anybody else was writing
    /// meanwhile.
    @discardableResult
    func endWriting(_ writing: Writing) -> Generation? {
        let last = writing.words.add(GenerationWord.end, at: ControlLayout.generations + writing.index)
        guard !GenerationWord(rawValue: writing.before).hasWriters,
            last == writing.before &+ GenerationWord.begin,
            writing.words.load(ControlLayout.stateIndex) == ControlFile.State.ready.rawValue
        else { return nil }
        return Generation(
            index: writing.index,
            word: last &+ GenerationWord.end,
            mapping: writing.words.address
        )
    }

    /// Raises every version.
    func raiseAll() throws(StoreError) {
        if isImpossible { return }
        while true {
            if countingWords == nil { _ = try mapPresent(isWritable: true) }
            guard let words = countingWords else { return }
            for index in 0..<ControlLayout.generationCount {
                words.add(GenerationWord.raise, at: ControlLayout.generations + index)
            }
            // Where another file took its place meanwhile, values may be held by that one.
            if words.load(ControlLayout.stateIndex) != ControlFile.State.superseded.rawValue { return }
        }
    }
}
