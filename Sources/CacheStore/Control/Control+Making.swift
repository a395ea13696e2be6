// SPDX-License-Identifier: Apache-2.0

import Platform

/// Making the control file again if it is missing or unusable.
///
/// This is done under the `format` lock, with a new inode: the file that other processes have mapped is marked as
/// superseded. The new one is `forming` until each entry stripe was held exclusively once: then every writer that had begun
/// without it has published, and all later writers use it.
extension Control {
    /// The ``Stripes/barrier(patience:)`` of the entries.
    typealias Barrier = (_ patience: (Int) -> Duration?) throws(CacheError) -> Set<Int>?

    /// How long a process waits for another one that makes the file, which takes milliseconds.
    ///
    /// Meanwhile it can do without the file.
    private static let patience: Duration = .seconds(1)
    /// How long to wait for a stripe.
    ///
    /// Only a stopped holder takes longer; then the next process that opens the cache passes the barrier.
    private static let stripePatience: Duration = .milliseconds(200)

    /// Maps the control file, and makes or completes it if that is necessary and possible.
    ///
    /// - Throws: The reason if there is no control file. Reading works without one, and so does writing, unless the file
    ///   exists but can't be mapped.
    func prepare(_ barrier: Barrier) throws(CacheError) {
        if isImpossible { return }
        let isWritable = directory.isWritable
        let isMapped = try look(isWritable: isWritable) == .mapped
        if !isWritable || isImpossible || (isMapped && file?.state == .ready) { return }
        // The process that makes the file now also completes it.
        let patience = isMapped ? .zero : Self.patience
        guard let lock = try directory.lock(StoreLayout.formatLock, patience: patience) else { return }
        if try look(isWritable: true) != .mapped, !isImpossible { try make() }
        try complete(barrier)
        lock.release()
    }

    private func make() throws(CacheError) {
        do throws(Errno) {
            // They don't change meanwhile: changes need the `format` lock.
            let rules = try RuleFile.marks(in: directory.root)
            let remote = try RemoteMarks(ofOutboxIn: directory.root)
            // Before the new file is in place: if this process is killed in between, no process continues to use the old
            // one.
            let old = try ControlFile.retire(in: directory.root, file)
            try replace(rules, remote)
            old?.close()
        } catch {
            if error == .wouldBlock { throw unreachable }
            throw CacheError(errno: error, "make the control file", path: path)
        }
        _ = try mapPresent(isWritable: true)
    }

    /// Makes a new control file and puts it in place.
    ///
    /// If there is no room for another one, the directory has no usable control file afterwards.
    private func replace(_ rules: RuleMarks, _ remote: RemoteMarks) throws(Errno) {
        do throws(Errno) {
            let draft = try TemporaryFile(in: directory, mode: FileMode.file)
            let mapping = directory.capabilities.sharedMapping
            try ControlMaking.make(in: draft.file, mapping, of: directory.path, rules, remote) {
                () throws(Errno) in
                try draft.rename(to: directory.root, StoreLayout.control)
                return false
            }
        } catch {
            // A file that names deleted words would keep all writers out.
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
    /// - Throws: Also if processes use words that this process can't see.
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
        file.setState(.ready)
    }

    /// Returns whether the mapped file is the one at the path, and no other directory has it, too.
    ///
    /// One system call, two if the words are in memory. Also returns true if there can be no control file.
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
