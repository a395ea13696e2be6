// SPDX-License-Identifier: Apache-2.0

import Platform

/// Making the control file anew where it is missing or can't be used.
///
/// Under the `format` lock, and as a new inode: who has another one mapped is told by that one that it counts
/// no more. The new one is `forming` until each entry stripe was held exclusively once: then every writer
/// that had begun without it has published, and from now on all look.
extension Control {
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
    func prepare(_ stripes: Stripes) throws(StoreError) {
        if isImpossible { return }
        let isWritable = directory.isWritable
        let isMapped = try mapPresent(isWritable: isWritable)
        if !isWritable || isImpossible || (isMapped && file?.state == .ready) { return }
        let lockPath = "\(directory.path)/\(StoreLayout.locks)/\(StoreLayout.formatLock)"
        let lock = try describing("lock", lockPath) { () throws(Errno) in
            // Who makes it now also completes it.
            try LockFile.acquire(
                StoreLayout.formatLock,
                in: directory.locks,
                patience: isMapped ? .zero : Self.patience
            )
        }
        guard let lock else { return }
        if try !mapPresent(isWritable: true), !isImpossible { try make() }
        try complete(stripes)
        lock.release()
    }

    private func make() throws(StoreError) {
        try describing("make the control file", path) { () throws(Errno) in
            let draft = try TemporaryFile(in: directory, mode: FileMode.file)
            try ControlFile.initialize(draft.file, state: .forming, isEmpty: false, now: .now)
            // Before the new one has its place: killed in between, nobody goes on with the old one.
            try ControlFile.supersede(in: directory.root)
            try draft.rename(to: directory.root, StoreLayout.control)
        }
        _ = try mapPresent(isWritable: true)
    }

    private func complete(_ stripes: Stripes) throws(StoreError) {
        guard let file, file.isWritable, file.state == .forming else { return }
        guard try stripes.barrier(patience: { Self.stripePatience })?.isEmpty ?? false else { return }
        file.setState(.ready)
    }

    /// Whether the file that is mapped is the one that the path names.
    ///
    /// One system call. Also true where there is none and can be none.
    func isCurrent() throws(StoreError) -> Bool {
        if isImpossible { return true }
        let present = try describing("look at the control file", path) { () throws(Errno) in
            try ifExists { () throws(Errno) in
                try directory.root.status(of: StoreLayout.control).identity
            }
        }
        guard let file else { return false }
        return present == file.identity && file.state != .superseded
    }
}
