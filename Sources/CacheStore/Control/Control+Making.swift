// SPDX-License-Identifier: Apache-2.0

import Platform

/// Functions that recreate the control file if it is missing or unusable.
///
/// A process does this under the `format` lock. It marks the file that other processes have mapped as superseded, and puts
/// a new inode in its place. The new file is `forming` until each entry stripe was held exclusively once: then every writer
/// that began without the file has published, and all later writers use the file.
extension Control {
    /// ``Stripes/barrier(patience:held:)`` of the stripes of the entries.
    typealias Barrier = (_ patience: (Int) -> Duration?) throws(CacheError) -> Set<Int>?

    /// How long a process waits for another one that is creating the file, which takes milliseconds.
    ///
    /// Without the file, the process can still work.
    private static let patience: Duration = .seconds(1)
    /// How long to wait for a stripe.
    ///
    /// Only a stopped holder keeps a stripe longer. Then the file stays `forming`, and the next process that opens the
    /// cache tries the barrier again.
    private static let stripePatience: Duration = .milliseconds(200)

    /// Maps the control file, and creates or completes it if that is necessary and possible.
    ///
    /// - Throws: An error if there is no control file. Reading works without one; so does writing, unless the file exists
    ///   but can't be mapped.
    func prepare(_ barrier: Barrier) throws(CacheError) {
        if isImpossible { return }
        let isWritable = directory.isWritable
        let isMapped = try look(isWritable: isWritable) == .mapped
        if !isWritable || isImpossible || (isMapped && file?.state == .ready) { return }
        // If the file is mapped but not ready, do not wait for the lock: the process that is creating the file also
        // completes it.
        let patience = isMapped ? .zero : Self.patience
        guard let lock = try directory.lock(StoreLayout.formatLock, patience: patience) else { return }
        if try look(isWritable: true) != .mapped, !isImpossible { try make() }
        try complete(barrier)
        lock.release()
    }

    private func make() throws(CacheError) {
        do throws(Errno) {
            // The rules don't change meanwhile: changes need the `format` lock.
            let rules = try RuleFile.marks(in: directory.root)
            let remote = try RemoteMarks(in: directory.root)
            // Retire the old file before the new one is in place: if this process is killed in between, no process
            // continues to use the old file.
            let old = try ControlFile.retire(in: directory.root, file)
            try replace(rules, remote)
            old?.close()
        } catch {
            if error == .wouldBlock { throw unreachable }
            throw CacheError(errno: error, "make the control file", path: path)
        }
        _ = try mapPresent(isWritable: true)
    }

    /// Creates a new control file and puts it in place of the old one.
    ///
    /// If there is no space for a new file, the directory has no usable control file afterwards.
    private func replace(_ rules: RuleMarks, _ remote: RemoteMarks) throws(Errno) {
        do throws(Errno) {
            // Where files can't be moved between directories, a copy would get the name, and the words name their file.
            let draft = try TemporaryFile(in: directory, mode: FileMode.file, isInRoot: true)
            let mapping = directory.capabilities.sharedMapping
            try ControlMaking.make(in: draft.file, mapping, of: directory.path, rules, remote) {
                () throws(Errno) in
                try draft.rename(to: directory.root, StoreLayout.control)
                return false
            }
        } catch {
            // A control file that names deleted words would block all writers.
            if directory.capabilities.sharedMapping == .memory {
                bestEffort { () throws(Errno) in try directory.root.unlink(StoreLayout.control) }
            }
            throw error
        }
    }

    /// The error if another process uses words that this process can't see.
    var unreachable: CacheError {
        CacheError(
            .busy,
            """
            use \(path): processes that use the cache share memory in a /dev/shm that this one does not see: give them \
            one /dev/shm (containers: --ipc), put the cache on ext4, or have them do without: `diskcache config set \
            share-memory false`
            """,
            path: path
        )
    }

    /// Discards the control file for all processes.
    ///
    /// - Throws: ``unreachable`` if other processes use words that this process can't see; file system errors.
    func discard() throws(CacheError) {
        do throws(Errno) {
            let old = try ControlFile.retire(in: directory.root, file)
            try ifExists { () throws(Errno) in try directory.root.unlink(StoreLayout.control) }
            old?.close()
        } catch {
            if error == .wouldBlock { throw unreachable }
            throw CacheError(errno: error, "discard the control file", path: path)
        }
    }

    private func complete(_ barrier: Barrier) throws(CacheError) {
        guard let file, file.isWritable, file.state == .forming else { return }
        let end = ContinuousClock.now + Self.patience
        let skipped = try barrier { _ in max(.zero, min(Self.stripePatience, end - .now)) }
        guard skipped?.isEmpty ?? false else { return }
        try describing("read the versions for", path) { () throws(Errno) in
            try takeRemoteMarks(file.words)
        }
        file.setState(.ready)
    }

    /// Raises the clock and the lower limit of versions to those on disk: until now other processes may have changed them
    /// with the control file that this one replaces, or without one.
    private func takeRemoteMarks(_ words: MappedWords) throws(Errno) {
        let marks = try RemoteMarks(in: directory.root)
        for (mark, word) in [(marks.clock, ControlWord.clock), (marks.cleared, .cleared)] {
            while true {
                let present = words.load(word)
                if present >= mark.rawValue || words.replace(present, by: mark.rawValue, at: word) { break }
            }
        }
    }

    /// Returns whether the mapped file is the one at the path, and no other directory contains a hard link to it.
    ///
    /// One system call; two if the words are in memory. Also returns true if the directory can't have a control file.
    func isCurrent() throws(CacheError) -> Bool {
        if isImpossible { return true }
        let present = try describing("look at the control file", path) { () throws(Errno) in
            try directory.root.presentStatus(of: StoreLayout.control)
        }
        guard let file else { return false }
        guard let present, present.identity == file.identity, present.linkCount == 1,
            file.state != .superseded
        else { return false }
        return try describing("look at the control file", path) { () throws(Errno) in try file.isReachable() }
    }
}
