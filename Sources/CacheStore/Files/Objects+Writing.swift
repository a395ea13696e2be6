// SPDX-License-Identifier: Apache-2.0

import Platform

/// Functions that create objects: the bytes are written first, then the file gets its name.
extension Objects {
    /// Returns whether the caller should try to use an existing object instead of writing a new one.
    ///
    /// Makes one system call to check for the object. If the last objects were all new and this one is short, it makes no
    /// call and returns false: writing the object unnecessarily costs little. The check is never skipped if the file
    /// system has no unnamed files, because a new object would then silently replace the existing one.
    func isWorthTrying(_ content: Content) throws(CacheError) -> Bool {
        if directory.capabilities.unnamedFiles, newKeyPredictor.isLikely,
            content.length <= Self.longestWrittenUnseen
        {
            return false
        }
        let isPresent = try isPresent(content)
        newKeyPredictor.note(isNew: !isPresent)
        return isPresent
    }

    /// The maximum length in bytes of an object that is written without a check for an existing one.
    ///
    /// For 4 KiB, creating the file takes twice as long as writing it (3 and 1.5 µs).
    private static let longestWrittenUnseen = 16 * 1024

    /// Updates an object's change time, which keeps running sweeps from deleting it.
    ///
    /// Three system calls.
    ///
    /// - Returns: false if there is no object, or if it belongs to another user and must be replaced by a new file of the
    ///   same name.
    func touch(_ digest: Digest, under lock: borrowing StripeLock) throws(CacheError) -> Bool {
        do throws(Errno) {
            try directory.objects.touch(StoreLayout.path(of: digest))
            return true
        } catch {
            if error.isMissing || error == .notPermitted || error == .accessDenied { return false }
            throw CacheError(errno: error, "touch an object", path: directory.path(of: digest, .objects))
        }
    }

    /// Creates the file of a new object, unnamed if the file system supports that.
    ///
    /// After a crash the kernel frees an unnamed file; a named one stays in `tmp/` until a sweep deletes it.
    ///
    /// An unnamed file is created in the object's shard if the digest is known: ext4 takes a new file's inode from the
    /// block group of its directory, and searches 256 groups faster than one. An unnamed file can be linked into any
    /// directory of the file system. With 4 KiB on ext4, an unnamed file that is linked costs 67,000 instructions, and a
    /// named file that is renamed 81,000 (Linux 6.18).
    private func create(for digest: Digest?) throws(Errno) -> TemporaryFile {
        guard directory.capabilities.unnamedFiles else {
            return try TemporaryFile(in: directory, mode: FileMode.object)
        }
        guard let digest else { return try unnamed(in: ".") }
        return try directory.objects.making(StoreLayout.shard(of: digest)) { () throws(Errno) in
            try unnamed(in: StoreLayout.shard(of: digest))
        }
    }

    /// Creates the file of an object whose digest is not known yet; calls `makeSpace` and retries if the disk is full.
    private func create(makingSpace makeSpace: (Int) -> Bool) throws(CacheError) -> TemporaryFile {
        while true {
            do throws(Errno) {
                return try create(for: nil)
            } catch {
                guard error.isDiskFull, makeSpace(0) else {
                    throw CacheError(errno: error, "copy a file to", path: place)
                }
            }
        }
    }

    private func unnamed(in place: RelativePath) throws(Errno) -> TemporaryFile {
        let file = try directory.objects.open(place, Self.unnamed, mode: FileMode.object)
        return TemporaryFile(unnamed: file, in: directory)
    }

    /// A constant: constructing an option set of another module takes 2,000 instructions.
    private static let unnamed: OpenFlags = [.readWrite, .temporary]

    /// Writes bytes in memory to a new object.
    func stage(_ bytes: Span<UInt8>, as digest: Digest) throws(CacheError) -> TemporaryFile {
        do throws(Errno) {
            var staged = try create(for: digest)
            try staged.file.writeAll(bytes)
            if isDurable { try staged.file.synchronize() }
            staged.allocatedSize = control.allocation(of: staged.file, length: bytes.count)
            return staged
        } catch {
            // If no new object can be written, an existing one may still be usable: the next put checks for it.
            newKeyPredictor.note(isNew: false)
            throw CacheError(errno: error, "write an object", path: place)
        }
    }

    /// Copies a file from its offset to its end into a new object, and describes the copied bytes.
    ///
    /// Shares extents if the file system supports that. Memory: one chunk of 256 KiB.
    ///
    /// `makeSpace` is called if the disk is full, as in ``FileDescriptor/writeAll(_:makeSpace:)``; the bytes copied so far
    /// are kept.
    ///
    /// - Throws: ``CacheError/Code/valueTooLarge`` once more than `most` bytes were read.
    func stage(
        copying source: borrowing FileDescriptor,
        atMost most: Int64?,
        makeSpace: (Int) -> Bool
    ) throws(CacheError) -> StagedCopy {
        var staged = try create(makingSpace: makeSpace)
        let isWhole = try describing("copy a file to", place) { () throws(Errno) in
            // The stored bytes are described afterwards, because the source may change during the copy.
            try staged.file.copyAll(from: source, atMost: most, makeSpace: makeSpace)
        }
        guard isWhole else {
            throw CacheError(
                .valueTooLarge,
                to: "store a value in",
                path: directory.path,
                detail: "it is longer than \(most ?? 0) bytes, the most that the limits allow"
            )
        }
        let content = try describing("copy a file to", place) { () throws(Errno) in
            if isDurable { try staged.file.synchronize() }
            try staged.file.rewind()
            return try staged.file.describeContent()
        }
        staged.allocatedSize = control.allocation(of: staged.file, length: content.length)
        return StagedCopy(object: staged, content: content, reservation: Reservation())
    }

    /// Keeps a staged object from being deleted by a sweep until it is published.
    func keep(_ staged: inout TemporaryFile) throws(CacheError) {
        try describing("keep an object", "\(directory.path)/\(StoreLayout.temporaries)") { () throws(Errno) in
            try staged.keepName()
        }
    }

    /// Gives a staged object its name; returns false if it is an unnamed file and the name exists already.
    func publish(_ staged: borrowing TemporaryFile, as digest: Digest) throws(CacheError) -> Bool {
        do throws(Errno) {
            // A named file replaces an existing object with the same bytes, whose readers keep the old file open.
            let isNew = try directory.objects.making(StoreLayout.shard(of: digest)) { () throws(Errno) in
                try staged.publish(in: directory.objects, StoreLayout.path(of: digest))
            }
            newKeyPredictor.note(isNew: isNew)
            if isNew && isDurable { try directory.objects.synchronizeNames(of: digest) }
            return isNew
        } catch {
            throw CacheError(errno: error, "publish an object", path: directory.path(of: digest, .objects))
        }
    }

    /// Replaces an unusable object with a staged one atomically.
    func replace(_ digest: Digest, with staged: inout TemporaryFile) throws(CacheError) {
        try describing("replace an object", directory.path(of: digest, .objects)) { () throws(Errno) in
            try directory.objects.making(StoreLayout.shard(of: digest)) { () throws(Errno) in
                try staged.replace(in: directory.objects, StoreLayout.path(of: digest))
            }
            if isDurable { try directory.objects.synchronizeNames(of: digest) }
        }
    }

    /// Writes an object to the medium, if it exists and the store is durable.
    ///
    /// Another process may have stored it without synchronizing it.
    func synchronizeIfDurable(_ digest: Digest) throws(CacheError) {
        guard isDurable else { return }
        try describing("synchronize an object", directory.path(of: digest, .objects)) { () throws(Errno) in
            _ = try ifExists { () throws(Errno) in
                try openFile(digest).synchronize()
                try directory.objects.synchronizeNames(of: digest)
            }
        }
    }

    /// The path of the directory of all objects, for messages.
    private var place: String { "\(directory.path)/\(StoreLayout.objects)" }
}

/// A new object that was copied from a file, and a description of its bytes.
package struct StagedCopy: ~Copyable {
    let object: TemporaryFile
    package let content: Content
    /// The space reserved for the object; empty if the length was not known before the copy.
    var reservation: Reservation
}
