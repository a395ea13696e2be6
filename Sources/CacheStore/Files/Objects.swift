// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import Platform

/// The outcome of a read of an object that a record names.
package enum Lookup<Value: ~Copyable>: ~Copyable {
    case found(Value)
    /// The object is missing: it was swept after the record was read, or removed manually.
    case missing
    /// The object is unusable: it is damaged, or another user's.
    case unusable
}

/// The objects: files named by the SHA-256 of their bytes, which never change once they have a name.
package final class Objects: Sendable {
    let directory: StoreDirectory
    let stripes: Stripes
    let isDurable: Bool
    let newKeyPredictor = NewKeyPredictor()
    let control: Control
    private let checksContent: Bool

    init(in control: Control, isDurable: Bool, checksContent: Bool) {
        self.control = control
        directory = control.directory
        stripes = Stripes(of: .objects, in: control)
        self.isDurable = isDurable
        self.checksContent = checksContent
    }

    // MARK: Reading

    /// Reads an object and checks its length, and its checksum unless the store omits that.
    ///
    /// The system calls are `openat2`, `read` and `close`; only the first if the object is missing.
    func read(_ content: Content, alwaysChecked: Bool = false) throws(CacheError) -> Lookup<Data> {
        let isChecked = checksContent || alwaysChecked
        do throws(Errno) {
            let path = StoreLayout.path(of: content.digest)
            let data = try directory.objects.contents(of: path, count: content.length) { (bytes) in
                !isChecked || CRC32C.checksum(bytes) == content.checksum
            }
            return data.map { .found($0) } ?? .unusable
        } catch {
            if error.isMissing { return .missing }
            if error.isNotRegularFile { return .unusable }
            let path = directory.path(of: content.digest, .objects)
            throw CacheError(errno: error, "read an object", path: path)
        }
    }

    /// Opens an object, positioned at its start, after checking its bytes as ``read(_:alwaysChecked:)`` does.
    ///
    /// Memory: one chunk.
    func open(_ content: Content) throws(CacheError) -> Lookup<FileDescriptor> {
        guard let file = try open(content.digest) else { return .missing }
        let isWhole = try describing("read an object", directory.path(of: content.digest, .objects)) {
            () throws(Errno) in
            let status = try file.status()
            guard status.kind == .regular, status.size == Int64(content.length) else { return false }
            if !checksContent { return true }
            var checksum = CRC32C()
            try file.forEachChunk(orThrow: { $0 }) { (chunk) throws(Errno) in checksum.update(chunk) }
            try file.rewind()
            return checksum.value == content.checksum
        }
        return isWhole ? .found(file) : .unusable
    }

    /// Opens an object without checking it; returns nil if it is missing or not a file.
    package func open(_ digest: Digest) throws(CacheError) -> FileDescriptor? {
        do throws(Errno) {
            return try openFile(digest)
        } catch {
            if error.isMissing || error.isNotRegularFile { return nil }
            throw CacheError(errno: error, "open an object", path: directory.path(of: digest, .objects))
        }
    }

    func openFile(_ digest: Digest) throws(Errno) -> FileDescriptor {
        try directory.objects.open(StoreLayout.path(of: digest), .readOnly)
    }

    /// Returns whether there is an object of the right length.
    ///
    /// One system call. Objects never change, so the caller needs no lock.
    func isPresent(_ content: Content) throws(CacheError) -> Bool {
        guard let status = try directory.status(of: content.digest, .objects) else { return false }
        return status.kind == .regular && status.size == Int64(content.length)
    }

    /// Reads and hashes an object's bytes, at most `length` of them; nil if it is missing.
    ///
    /// Memory: one chunk.
    func content(
        ofObject digest: Digest,
        atMost length: Int? = nil
    ) throws(CacheError) -> (content: Content, status: FileStatus)? {
        guard let file = try open(digest) else { return nil }
        return try describing("read an object", directory.path(of: digest, .objects)) { () throws(Errno) in
            let status = try file.status()
            return (try file.describeContent(atMost: length ?? .max), status)
        }
    }

    // MARK: Deleting

    /// The result of the check of an object that did not match a record.
    enum Verdict {
        /// Its bytes have the digest of its name.
        case sound
        case deleted
        /// It is missing or was replaced, or it is not known whether it is sound.
        case undecided
    }

    /// Deletes an object whose bytes don't have the digest that is its name.
    ///
    /// - Parameter length: the length that a record states; no more bytes are read. If the file is longer and these bytes
    ///   have the digest, the file was lengthened and is deleted. If it is longer and they don't, the record or the
    ///   object may be wrong, and nothing is deleted.
    func deleteIfCorrupt(
        _ digest: Digest,
        expecting length: Int? = nil,
        patience: Duration
    ) throws(CacheError) -> Verdict {
        guard let (content, status) = try content(ofObject: digest, atMost: length) else { return .undecided }
        let isLonger = status.size > Int64(content.length)
        if (content.digest == digest) != isLonger { return isLonger ? .undecided : .sound }
        let lock = try stripes.lock(.exclusive, stripe: digest.stripe, patience: patience)
        // A put may have replaced the object with a sound one meanwhile.
        let present = try directory.status(of: digest, .objects)
        guard present?.identity == status.identity, try directory.delete(digest, .objects) else {
            return .undecided
        }
        control.addUsage(bytes: -status.allocatedSize, entries: 0)
        lock.release()
        return .deleted
    }
}

extension FileStatus {
    /// Whether the file is much longer than its size on disk, for instance because truncate(2) has lengthened it.
    ///
    /// If so, callers determine the expected length before they read the file. The file of a valid value can have large
    /// holes too, if the file system compresses it or shares extents with a file that has holes.
    var hasLargeHoles: Bool { size - allocatedSize > 64 << 20 }
}

extension FileDescriptor {
    /// Returns the digest, length and checksum of the bytes from the offset to the end, or of the first `most` of them.
    ///
    /// Memory: one chunk.
    func describeContent(atMost most: Int = .max) throws(Errno) -> Content {
        var hash = SHA256()
        var checksum = CRC32C()
        var length = 0
        try forEachChunk(atMost: most, orThrow: { $0 }) { (chunk) throws(Errno) in
            hash.update(chunk)
            checksum.update(chunk)
            length += chunk.count
        }
        let digest = Digest(bytes: hash.finalize())
        return Content(digest: digest, length: length, checksum: checksum.value)
    }
}
