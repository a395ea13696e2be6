// SPDX-License-Identifier: Apache-2.0

import Platform

/// Making the control file anew where it is missing or can't be used.
///
/// Under the `format` lock, and as a new inode: a process that has another one mapped is told by that one that it counts
/// no more. The new one is `forming` until each entry stripe was held exclusively once: then every writer
/// that had begun without it has published, and from now on all look.
extension Control {
    /// What ``Stripes/barrier(patience:)`` of the entries does.
    typealias Barrier = (_ patience: (Int) -> Duration?) throws(CacheError) -> Set<Int>?

    /// How long one process waits for another that makes the file, which takes milliseconds.
    ///
    /// It can do without meanwhile.
    private static let patience: Duration = .seconds(1)
    /// How long to wait for a stripe: only one whose holder is stopped takes longer, and then the next who
    /// opens the cache passes the barrier.
    private static let stripePatience: Duration = .milliseconds(200)

    /// Maps the control file, and makes or completes it where need be and that can be done.
    ///
    /// - Throws: why there is none. Reading works without, and so does writing, unless there is one that
    ///   can't be mapped.
    func prepare(_ barrier: Barrier) throws(CacheError) {
        if isImpossible { return }
        let isWritable = directory.isWritable
        let isMapped = try look(isWritable: isWritable) == .mapped
        if !isWritable || isImpossible || (isMapped && file?.state == .ready) { return }
        // Who makes it now also completes it.
        let patience = isMapped ? .zero : Self.patience
        guard let lock = try directory.lock(StoreLayout.formatLock, patience: patience) else { return }
        if try look(isWritable: true) != .mapped, !isImpossible { try make() }
        try complete(barrier)
        lock.release()
    }

    private func make() throws(CacheError) {
        do throws(Errno) {
            // Nobody changes them meanwhile: who does has the `format` lock.
            let rules = try RuleFile.marks(in: directory.root)
            let remote = try OutboxFile.marks(in: directory.root)
            // Before the new one has its place: killed in between, nobody goes on with the old one.
            let old = try ControlFile.retire(in: directory.root, file)
            try replace(rules, remote)
            old?.close()
        } catch {
            if error == .wouldBlock { throw unreachable }
            throw CacheError(errno: error, "make the control file", path: path)
        }
        _ = try mapPresent(isWritable: true)
    }

    /// Where there is no room for another one, there is none afterwards.
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
            // One that names words that are gone would keep all writers out.
            if directory.capabilities.sharedMapping == .memory {
                bestEffort { () throws(Errno) in try directory.root.unlink(StoreLayout.control) }
            }
            throw error
        }
    }

    /// Some process uses words that this one can't see.
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

    /// Discards the control file, for all processes.
    ///
    /// - Throws: also where processes use words that this one can't see.
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

    /// Whether the file that is mapped is the one that the path names, and no other directory has it, too.
    ///
    /// One system call, two where the words are in memory. Also true where there is none and can be none.
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
