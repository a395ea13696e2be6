// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import FoundationEssentials
package import Platform

// For values that come over a network: fetched into a file that becomes the object, and renewed without their
// bytes.

extension SharedCache {
    /// The file into which the value of `key` is fetched, as far as that has got; nil where another caller,
    /// of any process, has it.
    package func partialFile(forKey key: String) throws(CacheError) -> PartialFile? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) -> PartialFile? in
            try PartialFile.open(digest, in: store.parts)
        }
    }

    /// Makes room for `partial` to grow to `length` bytes and some more, which count as used before they are written.
    ///
    /// It may wait for room as a put does. Without limits no system call, with a floor of free space one.
    ///
    /// - Parameter total: of the whole value, if it is known; one that can't be kept is refused at once.
    /// - Returns: the length that is reserved now.
    package func reserve(_ length: Int, of total: Int?, in partial: PartialFile) throws(CacheError) -> Int {
        try withStore { (store, now) throws(CacheError) in
            try store.reserve(length, of: total, in: partial, now: now)
        }
    }

    /// Whether the file system can take so many more bytes in `file` without going below the floor of free space.
    ///
    /// Where nobody can tell, it is tried. One system call for 1 MiB and more, else none.
    package func hasSpace(_ bytes: Int, in file: borrowing FileDescriptor) -> Bool {
        if bytes < 1 << 20 { return true }
        let limits = core.store.configuration.limits
        do throws(Errno) {
            let space = try file.fileSystemSpace()
            return Int64(bytes) <= space.availableBytes
                - (limits.minimumFree?.bytes(of: space.totalBytes) ?? 0)
        } catch {
            // The write tells.
            return true
        }
    }

    /// Whether the directory is so near to a limit that room is being made.
    package var isPressed: Bool { core.store.room.isPressed }

    /// How far the fetching of `key` has got, whoever does it, and what was noted of it; nil where nobody
    /// does.
    ///
    /// Five system calls.
    package func partialState(forKey key: String) throws(CacheError) -> (length: Int64, note: [UInt8]?)? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) -> (length: Int64, note: [UInt8]?)? in
            try PartialFile.state(of: digest, in: store.directory)
        }
    }

    /// Stores all that was fetched into `partial` under `key`: the file becomes the object.
    ///
    /// - Parameter check: may refuse it by its digest; then nothing is stored.
    /// - Returns: the new entry.
    package func put(
        _ partial: PartialFile,
        forKey key: String,
        options: PutOptions,
        check: (Digest) throws(CacheError) -> Void = { _ in }
    ) throws(CacheError) -> CacheEntry {
        let digest = try settledDigest(ofKey: key)
        let stored = now
        let record = try withStore { (store, _) throws(CacheError) -> Record in
            try store.put(partial, for: digest) { (content) throws(CacheError) -> Record in
                try check(content.digest)
                return try self.record(of: content, key: key, options, now: stored)
            }
        }
        forget(key, .replaced)
        return CacheEntry(record, keyDigest: digest, key: key, accessed: nil, now: stored)
    }

    /// Gives the value of `key` other terms, as of now, without a look at its bytes; nil where it is not the
    /// one that was `seen` any more.
    ///
    /// Seven system calls. It may have expired, as long as its stale period has not.
    package func renew(
        _ seen: CacheEntry,
        forKey key: String,
        options: PutOptions
    ) throws(CacheError) -> CacheEntry? {
        let digest = try settledDigest(ofKey: key)
        let renewal = try repeatingConflicts { () throws(CacheError) -> TermsRenewal? in
            try withStore { (store, now) throws(CacheError) -> TermsRenewal? in
                guard let live = try store.liveEntry(digest, now: now, allowingStale: true),
                    live.record.content.digest == seen.digest, live.record.created.date == seen.created
                else { return .gone }
                let record = try record(of: live.record.content, key: key, options, now: now)
                switch try store.rewrite(record, for: digest, ifStill: live.stored, now: now) {
                case .published:
                    return .renewed(CacheEntry(record, keyDigest: digest, key: key, accessed: nil, now: now))
                case .conflict: return nil
                case .objectMissing: return .gone
                }
            }
        }
        guard case .renewed(let entry) = renewal else { return nil }
        forget(key, .replaced)
        return entry
    }

    /// The process that computes the value of `key`, as far as its lock's file says.
    package func processComputing(_ key: String) throws(CacheError) -> Int32? {
        try computingProcess(forKey: key)?.processIdentifier
    }
}

/// How giving a value other terms has ended.
private enum TermsRenewal {
    case renewed(CacheEntry)
    case gone
}
