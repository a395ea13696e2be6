// SPDX-License-Identifier: Apache-2.0

import Platform

/// Making objects: written first, then given their names.
extension Objects {
    /// Whether to try it with the object that is there before it is written.
    ///
    /// One call; none, and false, where the last ones were all new and it costs little to write one in vain. Never
    /// where there are no unnamed files: there a new object takes the place of the one that is there, unnoticed.
    func isWorthTrying(_ content: Content) throws(CacheError) -> Bool {
        if directory.capabilities.unnamedFiles, novelty.isLikely, content.length <= Self.longestWrittenUnseen
        {
            return false
        }
        let isPresent = try isPresent(content)
        novelty.note(isNew: !isPresent)
        return isPresent
    }

    /// Bytes: creating the file for so many takes twice as long as writing them (3 and 1.5 µs for 4 KiB).
    private static let longestWrittenUnseen = 16 * 1024

    /// Raises an object's change time, which keeps sweeps that are under way from deleting it; false where there is
    /// none, or one that belongs to another user, which is to be replaced by a new file of the same name.
    ///
    /// Three calls. The caller holds the object's stripe.
    func touch(_ digest: Digest) throws(CacheError) -> Bool {
        do throws(Errno) {
            try directory.objects.touch(StoreLayout.path(of: digest))
            return true
        } catch {
            if error.tellsOfNothing || error == .notPermitted || error == .accessDenied { return false }
            throw CacheError(errno: error, "touch an object", path: directory.path(of: digest, .objects))
        }
    }

    /// Starts a new object; a crash before it is published leaves nothing behind.
    ///
    /// In its shard where the digest is known: ext4 gives a new file an inode of its directory's group, and
    /// 256 groups are searched faster than one. A name can be given in any directory of the file system.
    /// Unnamed and linked, 4 KiB cost ext4 67,000 instructions; named and renamed 81,000 (Linux 6.18).
    private func stage(for digest: Digest?) throws(CacheError) -> TemporaryFile {
        try describing("create an object", place) { () throws(Errno) in
            guard directory.capabilities.unnamedFiles else {
                return try TemporaryFile(in: directory, mode: FileMode.object)
            }
            guard let digest else { return try unnamed(in: ".") }
            return try directory.objects.making(StoreLayout.shard(of: digest)) { () throws(Errno) in
                try unnamed(in: StoreLayout.shard(of: digest))
            }
        }
    }

    /// The same for one whose digest is not known yet; where no inode is left, some are set free.
    private func stage(makingSpace makeSpace: (Int) -> Bool) throws(CacheError) -> TemporaryFile {
        while true {
            do throws(CacheError) {
                return try stage(for: nil)
            } catch {
                guard error.cause?.tellsOfFullDisk ?? false, makeSpace(0) else { throw error }
            }
        }
    }

    private func unnamed(in place: RelativePath) throws(Errno) -> TemporaryFile {
        let file = try directory.objects.open(place, Self.unnamed, mode: FileMode.object)
        return TemporaryFile(unnamed: file, in: directory)
    }

    /// Made once: putting an option set of another module together takes 2,000 instructions.
    private static let unnamed: OpenFlags = [.readWrite, .temporary]

    /// Writes bytes in memory to a new object.
    func stage(_ bytes: Span<UInt8>, as digest: Digest) throws(CacheError) -> TemporaryFile {
        do throws(CacheError) {
            var staged = try stage(for: digest)
            try describing("write an object", place) { () throws(Errno) in
                try staged.file.writeAll(bytes)
                if isDurable { try staged.file.synchronize() }
            }
            staged.allocatedSize = control.allocation(of: staged.file, length: bytes.count)
            return staged
        } catch {
            // Where none can be written, one that is there may still do: the next put looks.
            novelty.note(isNew: false)
            throw error
        }
    }

    /// Copies a file from its offset to its end into a new object, sharing its extents where the file system
    /// can, and describes what arrived.
    ///
    /// Memory: one chunk of 256 KiB.
    ///
    /// `makeSpace` is asked where the disk is full, as by ``FileDescriptor/writeAll(_:makeSpace:)``: what was copied
    /// stays meanwhile.
    ///
    /// - Throws: ``CacheError/Code/valueTooLarge`` once more than `most` bytes were read.
    func stage(
        copying source: borrowing FileDescriptor,
        atMost most: Int64?,
        makeSpace: (Int) -> Bool
    ) throws(CacheError) -> StagedCopy {
        var staged = try stage(makingSpace: makeSpace)
        let isWhole = try describing("copy a file to", place) { () throws(Errno) in
            // Described is what was stored, also when the source changes meanwhile.
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
        return StagedCopy(object: staged, content: content)
    }

    /// Has a staged object outlive any sweep until it is published.
    func keep(_ staged: inout TemporaryFile) throws(CacheError) {
        try describing("keep an object", "\(directory.path)/\(StoreLayout.temporaries)") { () throws(Errno) in
            try staged.keepName()
        }
    }

    /// Gives a staged object its name.
    ///
    /// False: there is one of that name already.
    func publish(_ staged: borrowing TemporaryFile, as digest: Digest) throws(CacheError) -> Bool {
        try describing("publish an object", directory.path(of: digest, .objects)) { () throws(Errno) in
            // Replaces, if need be, a file of the same bytes: readers of that one keep it open.
            let isNew = try directory.objects.making(StoreLayout.shard(of: digest)) { () throws(Errno) in
                try staged.publish(in: directory.objects, StoreLayout.path(of: digest))
            }
            novelty.note(isNew: isNew)
            if isNew && isDurable { try directory.objects.synchronizeNames(of: digest) }
            return isNew
        }
    }

    /// Puts a staged object in the place of an unusable one, in one step.
    func replace(_ digest: Digest, with staged: inout TemporaryFile) throws(CacheError) {
        try describing("replace an object", directory.path(of: digest, .objects)) { () throws(Errno) in
            try directory.objects.making(StoreLayout.shard(of: digest)) { () throws(Errno) in
                try staged.replace(in: directory.objects, StoreLayout.path(of: digest))
            }
            if isDurable { try directory.objects.synchronizeNames(of: digest) }
        }
    }

    /// Puts an object on the medium that another process may have stored without, if it is there.
    ///
    /// For a durable store only.
    func synchronizeIfDurable(_ digest: Digest) throws(CacheError) {
        guard isDurable else { return }
        try describing("synchronize an object", directory.path(of: digest, .objects)) { () throws(Errno) in
            _ = try ifExists { () throws(Errno) in
                try openFile(digest).synchronize()
                try directory.objects.synchronizeNames(of: digest)
            }
        }
    }

    /// Of all objects, for messages.
    private var place: String { "\(directory.path)/\(StoreLayout.objects)" }
}

/// A new object made from a file, and what turned out to be in it.
package struct StagedCopy: ~Copyable {
    let object: TemporaryFile
    package let content: Content
    /// Where its length was known before it was copied; forgotten where it is not put.
    var claim: RoomClaim?
}
