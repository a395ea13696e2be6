// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// What a process has of a directory's control file.
package enum ControlCondition: Sendable {
    /// It is mapped, as the other processes have it.
    case shared
    /// The same; its words are in memory, as the file system is none whose files may be mapped for writing.
    case sharedInMemory
    /// It is mapped for reading only.
    case readOnly
    /// There is none, or it could not be mapped.
    case missing
    /// Other processes use one in memory that this process can't see.
    case unreachable
    /// The file system can't have one.
    case impossible
}

/// The control file as a store has it mapped now, if it has one.
///
/// It can appear, when another process has made one, and be replaced. The words of one that was replaced can be looked at
/// until this object goes: then they are memory of this process, and say that they are superseded. Their address
/// tells them from those of any other file. So whoever takes an answer from a word that can be 0 looks at the state
/// after it.
package final class Control: Sendable {
    private struct State {
        var file: ControlFile?
        /// What keeps the addresses of earlier files taken: 3 MiB of addresses each, and a page or two.
        var retired: [MappedFile] = []
        /// The file system can't have one, for nobody.
        var isImpossible = false
    }

    package let directory: StoreDirectory
    /// ``MappedWords/address`` of the file, 0 for none; the second only where it may be written.
    private let readable = Atomic<UInt>(0)
    private let writable = Atomic<UInt>(0)
    /// ``ControlFile/filterSeal`` of the file, 0 for none.
    private let filterSeal = Atomic<UInt64>(0)
    private let state = Locked(State())
    let followedRules = FollowedRules()

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
    var countingWords: MappedWords? {
        writableWords.flatMap { $0.areSuperseded ? nil : $0 }
    }

    /// The filter of keys, if it counts at this moment; see ``KeyFilter``.
    ///
    /// Four loads. Where another file is being mapped just now, the seal is of one and the words are of the
    /// other: then they differ, and nothing is answered.
    var filter: KeyFilter? {
        guard let words, words.areReady else { return nil }
        let seal = filterSeal.load(ordering: .acquiring)
        guard seal != 0, words.load(.filterSeal) == seal else { return nil }
        return KeyFilter(in: words)
    }

    /// Whether the filter says that there is no entry of `key`.
    ///
    /// No system call.
    func rulesOut(_ key: Digest) -> Bool {
        guard let filter else { return false }
        // The state last: where the file is replaced meanwhile, the bits are gone.
        return !filter.mayContain(key) && filter.words.areReady
    }

    /// The file whose filter a sweep can complete, by noting all entries from now on; nil where there is none to
    /// complete.
    ///
    /// Only of a file that is ready already: then whatever was published without it is there to be listed.
    var fileToComplete: ControlFile? {
        file.flatMap { $0.isWritable && $0.state == .ready && $0.filterSeal != 0 ? $0 : nil }
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
    func mapPresent(isWritable: Bool) throws(CacheError) -> Bool {
        let found = try look(isWritable: isWritable)
        if found == .unreachable { throw unreachable }
        return found == .mapped
    }

    /// The same, and leaves it to the caller what to do where the words are out of sight.
    func look(isWritable: Bool) throws(CacheError) -> Look {
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
        case .nothing:
            return .nothing
        case .unreachable(let identity):
            // Whoever uses them has the words that are mapped here.
            return file?.identity == identity ? .nothing : .unreachable
        case .refused:
            state.withLock { $0.isImpossible = true }
            return .nothing
        }
    }

    /// What this process has of the control file.
    package var condition: ControlCondition {
        if writableWords != nil { return file?.isInMemory ?? false ? .sharedInMemory : .shared }
        if words != nil { return .readOnly }
        if isImpossible { return .impossible }
        do throws(CacheError) {
            return try look(isWritable: directory.isWritable) == .unreachable ? .unreachable : .missing
        } catch {
            return .missing
        }
    }

    var path: String { "\(directory.path)/\(StoreLayout.control)" }

    /// Goes on without a control file for good, and tells whoever else has it mapped.
    func giveUp() {
        let file = state.withLock { (state) -> ControlFile? in
            state.isImpossible = true
            filterSeal.store(0, ordering: .releasing)
            readable.store(0, ordering: .releasing)
            writable.store(0, ordering: .releasing)
            defer { state.file = nil }
            return state.file
        }
        guard let file else { return }
        file.supersede()
        let addresses = file.retire()
        state.withLock { $0.retired.append(addresses) }
    }

    private func adopt(_ file: ControlFile) {
        let replaced = state.withLock { (state) -> ControlFile? in
            let present = state.file
            if state.isImpossible { return nil }
            // Replaced since it was found: another thread may have the later one already.
            if file.state == .superseded { return nil }
            // Another thread was first.
            if let present, present.identity == file.identity, present.isWritable || !file.isWritable {
                return nil
            }
            state.file = file
            filterSeal.store(file.filterSeal, ordering: .releasing)
            readable.store(file.words.address, ordering: .releasing)
            writable.store(file.isWritable ? file.words.address : 0, ordering: .releasing)
            return present
        }
        guard let replaced else { return }
        // Whoever else still has it mapped must not go on with it either.
        if replaced.identity != file.identity { replaced.supersede() }
        let addresses = replaced.retire()
        state.withLock { $0.retired.append(addresses) }
    }
}
