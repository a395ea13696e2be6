// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import FoundationEssentials
package import Platform

// Support for downloads: a value is fetched into a file that becomes its object. A revalidated value gets new options
// without a transfer of its bytes.

extension SharedCache {
    /// Opens the partial download of `key`, with the bytes fetched so far; returns nil if another caller, in any process,
    /// holds it.
    package func partialFile(forKey key: String) throws(CacheError) -> PartialFile? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) -> PartialFile? in
            try PartialFile.open(digest, in: store.control)
        }
    }

    /// Reserves space for `partial` to grow to `length` bytes and some more; reserved bytes count as used before they are
    /// written.
    ///
    /// Waits for space as a put does. Takes no system call without limits, and one if there is a minimum of free space.
    ///
    /// - Parameters:
    ///   - total: the length of the whole value, if known; a value that cannot be stored is rejected at once.
    ///   - patience: the longest wait, if it is shorter than that of a put.
    /// - Returns: the reserved length.
    package func reserve(
        _ length: Int,
        of total: Int?,
        in partial: PartialFile,
        within patience: Duration? = nil
    ) throws(CacheError) -> Int {
        try withStore { (store, now) throws(CacheError) in
            try store.reserve(length, of: total, in: partial, now: now, within: patience)
        }
    }

    /// Counts `length` bytes of `partial` as used before they are written, without making space for them.
    package func count(_ length: Int, in partial: PartialFile) {
        core.store.count(length, in: partial)
    }

    /// Whether the file system has space for this many more bytes in `file` without going below the minimum of free space.
    ///
    /// True if that cannot be determined, so that the caller tries the write. One system call for 1 MiB or more, otherwise
    /// none.
    package func hasSpace(_ bytes: Int, in file: borrowing FileDescriptor) -> Bool {
        if bytes < 1 << 20 { return true }
        let limits = core.store.configuration.limits
        do throws(Errno) {
            let space = try file.fileSystemSpace()
            return Int64(bytes) <= space.availableBytes
                - (limits.minimumFree?.bytes(of: space.totalBytes) ?? 0)
        } catch {
            // The write itself reports a full disk.
            return true
        }
    }

    /// Whether the directory is so close to a limit that values are being evicted.
    package var isPressed: Bool { core.store.isPressed }

    /// Returns the present length and the note of the partial download of `key`, whichever process holds it; nil if there is
    /// none.
    ///
    /// Five system calls.
    package func partialState(forKey key: String) throws(CacheError) -> (length: Int64, note: [UInt8]?)? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) -> (length: Int64, note: [UInt8]?)? in
            try PartialFile.state(of: digest, in: store.directory)
        }
    }

    /// Stores the completed download `partial` under `key`: the file becomes the object.
    ///
    /// - Parameter check: throws an error to reject the content's digest; then nothing is stored.
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

    /// Replaces the options of the value of `key`, as of now, without reading its bytes; returns nil if the key no longer
    /// has the value that was `seen`.
    ///
    /// Seven system calls. The value may have expired, but not its stale period.
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
                case .written:
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

    /// Returns the process that computes the value of `key`, according to its lock file.
    package func processComputing(_ key: String) throws(CacheError) -> Int32? {
        try computingProcess(forKey: key)?.processIdentifier
    }
}

/// The result of replacing the options of a value.
private enum TermsRenewal {
    case renewed(CacheEntry)
    case gone
}
