// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The state of a directory's control file, as this process sees it.
package enum ControlCondition: Sendable {
    /// Mapped and shared with the other processes.
    case shared
    /// Mapped and shared, with the words in memory, because files of this file system can't be safely mapped for writing.
    case sharedInMemory
    /// Mapped for reading only.
    case readOnly
    /// Missing, or it could not be mapped.
    case missing
    /// Other processes use words in memory that this process can't see.
    case unreachable
    /// The file system can't have one, or this process has given it up.
    case impossible
}

/// The control file as the store currently has it mapped, if any.
///
/// Another process can create the file later, and can replace it. The words of a replaced file stay readable until this
/// object is deallocated: they are then private memory of this process, all 0 except for the state, which is superseded.
/// Their address distinguishes them from the words of any other file. If 0 is a meaningful value of a word, its reader must
/// load the state after the word.
package final class Control: Sendable {
    private struct State {
        var file: ControlFile?
        /// Keeps the addresses of earlier files reserved: 3 MiB of addresses each, and a page or two of memory.
        var retired: [MappedFile] = []
        /// Whether the file system can't have a control file, or it was given up.
        var isImpossible = false
    }

    package let directory: StoreDirectory
    /// The ``MappedWords/address`` of the file, 0 if none is mapped; `writable` is also 0 if the file is read-only.
    private let readable = Atomic<UInt>(0)
    private let writable = Atomic<UInt>(0)
    /// The ``ControlFile/filterSeal`` of the file, 0 if none is mapped.
    private let filterSeal = Atomic<UInt64>(0)
    private let state = Locked(State())
    let followedRules = FollowedRules()

    /// Creates an object without a mapped file.
    init(of directory: StoreDirectory) {
        self.directory = directory
    }

    /// The words of the file, for reading; nil if no file is mapped.
    ///
    /// One load.
    var words: MappedWords? {
        unsafe MappedWords(address: readable.load(ordering: .acquiring), count: ControlLayout.wordCount)
    }

    /// The words of the file, if they can also be changed.
    var writableWords: MappedWords? {
        unsafe MappedWords(address: writable.load(ordering: .acquiring), count: ControlLayout.wordCount)
    }

    /// The writable words; also nil if another file replaces this one.
    var countingWords: MappedWords? {
        writableWords.flatMap { $0.areSuperseded ? nil : $0 }
    }

    /// The key filter, if it is valid at this moment; see ``BloomFilter``.
    ///
    /// Four loads. While another file is being mapped, the seal in this object may belong to one file and the words to the
    /// other. Then the two seals differ, and the result is nil.
    var filter: BloomFilter? {
        guard let words, words.areReady else { return nil }
        let seal = filterSeal.load(ordering: .acquiring)
        guard seal != 0, words.load(.filterSeal) == seal else { return nil }
        return BloomFilter(in: words)
    }

    /// Returns whether the filter shows that `key` has no entry.
    ///
    /// No system call.
    func rulesOut(_ key: Digest) -> Bool {
        guard let filter else { return false }
        // Load the state last: if the file was replaced meanwhile, its bits now read as 0.
        return !filter.mayContain(key) && filter.words.areReady
    }

    /// The file whose filter a sweep can complete if it adds all entries from now on; nil if there is no such file.
    ///
    /// The file must already be ready: then all entries that were published without it exist, and the sweep lists them.
    var fileToComplete: ControlFile? {
        file.flatMap { $0.isWritable && $0.state == .ready && $0.filterSeal != 0 ? $0 : nil }
    }

    /// Whether the directory can't have a control file.
    ///
    /// Then writers work without it, and readers check the record each time.
    var isImpossible: Bool {
        directory.capabilities.sharedMapping == .none || state.withLock { $0.isImpossible }
    }

    /// The mapped file, if any.
    var file: ControlFile? { state.withLock { $0.file } }

    /// Whether the control file needs no more preparation: it is ready, or impossible.
    var isSettled: Bool { isImpossible || file?.state == .ready }

    /// The result of ``look(isWritable:)``.
    enum Look {
        case mapped
        /// No usable file.
        case nothing
        /// A file whose words this process can't see.
        case unreachable
    }

    /// Maps the file at the path unless it is mapped already; returns false if the path has no usable file.
    ///
    /// - Throws: The reason if the file exists but can't be mapped.
    func mapPresent(isWritable: Bool) throws(CacheError) -> Bool {
        let found = try look(isWritable: isWritable)
        if found == .unreachable { throw unreachable }
        return found == .mapped
    }

    /// Maps the file like ``mapPresent(isWritable:)``, but leaves it to the caller to handle unreachable words.
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
            // If this process has the same control file mapped, it uses the same words, and can mark them as superseded.
            return file?.identity == identity ? .nothing : .unreachable
        case .refused:
            state.withLock { $0.isImpossible = true }
            return .nothing
        }
    }

    /// The state of the control file, as this process sees it.
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

    /// Stops using a control file permanently, and marks it as superseded for all other processes that have it mapped.
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
            // The file was superseded after it was found: another thread may already have mapped its successor.
            if file.state == .superseded { return nil }
            // Another thread has already mapped this file.
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
        // Other processes that still have it mapped must stop using it, too.
        if replaced.identity != file.identity { replaced.supersede() }
        let addresses = replaced.retire()
        state.withLock { $0.retired.append(addresses) }
    }
}
