// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import Platform

/// The objects: files named by the SHA-256 of their bytes, which never change once they have a name.
package final class ObjectStore: Sendable {
    private let directory: StoreDirectory
    private let isDurable: Bool
    private let novelty = Novelty()

    init(in directory: StoreDirectory, isDurable: Bool) {
        self.directory = directory
        self.isDurable = isDurable
    }

    /// Where an object is, for messages.
    func path(of digest: Digest) -> String {
        "\(directory.path)/\(StoreLayout.objects)/\(StoreLayout.path(of: digest))"
    }

    // MARK: Reading

    /// What reading an object found.
    enum ReadResult {
        /// Bytes of the right length, with the right checksum if that was asked for.
        case valid(Data)
        /// No such object: swept since the record was read, or by hand.
        case missing
        /// There, but damaged.
        case corrupt
    }

    /// Reads an object and checks its length, and its checksum too if that `isChecked`: `openat2`, `read`,
    /// `close`; one call where it is missing.
    func read(_ content: Content, isChecked: Bool) throws(StoreError) -> ReadResult {
        do throws(Errno) {
            let path = StoreLayout.path(of: content.digest)
            let data = try directory.objects.contents(of: path, count: content.length) { (bytes) in
                !isChecked || CRC32C.checksum(bytes) == content.checksum
            }
            guard let data else { return .corrupt }
            return .valid(data)
        } catch {
            if error.tellsOfNothing { return .missing }
            if error.tellsOfNoFile { return .corrupt }
            throw StoreError(errno: error, "read an object", path: path(of: content.digest))
        }
    }

    /// Opens an object without checking it; nil where it is missing, or something other than a file has its
    /// name.
    package func open(_ digest: Digest) throws(StoreError) -> FileDescriptor? {
        do throws(Errno) {
            return try openFile(digest)
        } catch {
            if error.tellsOfNothing || error.tellsOfNoFile { return nil }
            throw StoreError(errno: error, "open an object", path: path(of: digest))
        }
    }

    private func openFile(_ digest: Digest) throws(Errno) -> FileDescriptor {
        try directory.objects.open(StoreLayout.path(of: digest), .readOnly)
    }

    func status(of digest: Digest) throws(StoreError) -> FileStatus? {
        try describing("look at an object", self.path(of: digest)) { () throws(Errno) in
            try ifFiled { () throws(Errno) in
                try directory.objects.status(of: StoreLayout.path(of: digest))
            }
        }
    }

    // MARK: Writing

    /// How looking for an object and raising its change time ended.
    enum Touch {
        /// It is there, and no sweep that has begun before now will delete it.
        case present
        case absent
        /// It belongs to another user and can't be kept from a sweep: to be replaced by a new file of the same
        /// name.
        case unusable
    }

    /// Whether there is an object that can be whole; one of the wrong length can't.
    ///
    /// One call. Objects never change, so the caller needs no lock.
    func isPresent(_ content: Content) throws(StoreError) -> Bool {
        guard let status = try status(of: content.digest) else { return false }
        return status.kind == .regular && status.size == Int64(content.length)
    }

    /// Whether to try it with the object that is there before it is written.
    ///
    /// One call; none, and false, where the last ones were all new and it costs little to write one in vain. Never
    /// where there are no unnamed files: there a new object takes the place of the one that is there, unnoticed.
    func isWorthTrying(_ content: Content) throws(StoreError) -> Bool {
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

    /// Raises an object's change time, which keeps sweeps that are under way from deleting it.
    ///
    /// One call. The caller holds the object's stripe.
    func touch(_ digest: Digest) throws(StoreError) -> Touch {
        do throws(Errno) {
            try directory.objects.touch(StoreLayout.path(of: digest))
            return .present
        } catch {
            switch error {
            case .noEntry, .notDirectory: return .absent
            case .notPermitted, .accessDenied: return .unusable
            default: throw StoreError(errno: error, "touch an object", path: self.path(of: digest))
            }
        }
    }

    /// Starts a new object; a crash before it is published leaves nothing behind.
    ///
    /// In its shard where the digest is known: ext4 gives a new file an inode of its directory's group, and
    /// 256 groups are searched faster than one. A name can be given in any directory of the file system.
    /// Unnamed and linked, 4 KiB cost ext4 67,000 instructions; named and renamed 81,000 (Linux 6.18).
    private func stage(for digest: Digest?) throws(StoreError) -> StagedObject {
        try describing("create an object", "\(directory.path)/\(StoreLayout.objects)") { () throws(Errno) in
            guard directory.capabilities.unnamedFiles else {
                return .named(try TemporaryFile(in: directory, mode: FileMode.object))
            }
            guard let digest else { return .unnamed(try openUnnamed(".")) }
            return try directory.objects.makingShard(of: digest) { () throws(Errno) in
                .unnamed(try openUnnamed(StoreLayout.shard(of: digest)))
            }
        }
    }

    /// The same for one whose digest is not known yet; where no inode is left, some are set free.
    private func stage(makingSpace makeSpace: (Int) -> Bool) throws(StoreError) -> StagedObject {
        while true {
            do throws(StoreError) {
                return try stage(for: nil)
            } catch {
                guard error.errno?.tellsOfFullDisk ?? false, makeSpace(0) else { throw error }
            }
        }
    }

    private func openUnnamed(_ place: RelativePath) throws(Errno) -> FileDescriptor {
        try directory.objects.open(place, Self.unnamed, mode: FileMode.object)
    }

    /// Made once: putting an option set of another module together takes 2,000 instructions.
    private static let unnamed: OpenFlags = [.readWrite, .temporary]

    /// Writes bytes in memory to a new object.
    func stage(_ bytes: Span<UInt8>, as digest: Digest) throws(StoreError) -> StagedObject {
        do throws(StoreError) {
            return try write(bytes, as: digest)
        } catch {
            // Where none can be written, one that is there may still do: the next put looks.
            novelty.note(isNew: false)
            throw error
        }
    }

    private func write(_ bytes: Span<UInt8>, as digest: Digest) throws(StoreError) -> StagedObject {
        let staged = try stage(for: digest)
        try describing("write an object", "\(directory.path)/\(StoreLayout.objects)") { () throws(Errno) in
            try staged.withFile { (file) throws(Errno) in
                try file.writeAll(bytes)
                if isDurable { try file.synchronize() }
            }
        }
        return staged
    }

    /// Copies a file from its offset to its end into a new object, sharing its extents where the file system
    /// can, and describes what arrived.
    ///
    /// Memory: one chunk of 256 KiB.
    ///
    /// `makeSpace` is asked where the disk is full, as by ``FileDescriptor/writeAll(_:makeSpace:)``: what was copied
    /// stays meanwhile.
    ///
    /// - Throws: ``StoreError/Code/valueTooLarge`` once more than `most` bytes were read.
    func stage(
        copying source: borrowing FileDescriptor,
        atMost most: Int64?,
        makeSpace: (Int) -> Bool
    ) throws(StoreError) -> StagedCopy {
        let staged = try stage(makingSpace: makeSpace)
        let place = "\(directory.path)/\(StoreLayout.objects)"
        let isWhole = try describing("copy a file to", place) { () throws(Errno) in
            // Described is what was stored, also when the source changes meanwhile.
            try staged.withFile { (file) throws(Errno) in
                try file.copyAll(from: source, atMost: most, makeSpace: makeSpace)
            }
        }
        guard isWhole else {
            throw StoreError(
                .valueTooLarge,
                "store a value in",
                path: directory.path,
                detail: "it is longer than \(most ?? 0) bytes, the most that the limits allow"
            )
        }
        let content = try describing("copy a file to", place) { () throws(Errno) in
            try staged.withFile { (file) throws(Errno) in
                if isDurable { try file.synchronize() }
                try file.rewind()
                return try file.describeContent()
            }
        }
        return StagedCopy(object: staged, content: content)
    }

    /// Has a staged object, named or not, outlive any sweep until it is published.
    func keep(_ staged: consuming StagedObject) throws(StoreError) -> StagedObject {
        do throws(Errno) {
            switch consume staged {
            case .unnamed(let file): return .named(try TemporaryFile(naming: file, in: directory))
            case .named(let file):
                try file.keepName()
                return .named(file)
            }
        } catch {
            throw StoreError(
                errno: error,
                "keep an object",
                path: "\(directory.path)/\(StoreLayout.temporaries)"
            )
        }
    }

    /// Gives a staged object its name.
    ///
    /// False: there is one of that name already.
    func publish(_ staged: borrowing StagedObject, as digest: Digest) throws(StoreError) -> Bool {
        let path = StoreLayout.path(of: digest)
        return try describing("publish an object", self.path(of: digest)) { () throws(Errno) in
            let isNew = try directory.objects.makingShard(of: digest) { () throws(Errno) in
                switch staged {
                case .unnamed(let file):
                    do throws(Errno) {
                        try directory.objects.link(file, as: path)
                        return true
                    } catch {
                        if error == .exists { return false }
                        throw error
                    }
                case .named(let file):
                    // Replaces, if need be, a file of the same bytes: readers of that one keep it open.
                    try file.rename(to: directory.objects, path)
                    return true
                }
            }
            novelty.note(isNew: isNew)
            if isNew && isDurable { try synchronizeNames(of: digest) }
            return isNew
        }
    }

    /// Puts a staged object in the place of an unusable one, in one step.
    func replace(_ digest: Digest, with staged: consuming StagedObject) throws(StoreError) {
        do throws(Errno) {
            let file: TemporaryFile
            switch consume staged {
            case .unnamed(let unnamed): file = try TemporaryFile(naming: unnamed, in: directory)
            case .named(let named): file = named
            }
            try file.rename(to: directory.objects, StoreLayout.path(of: digest))
            if isDurable { try synchronizeNames(of: digest) }
        } catch {
            throw StoreError(errno: error, "replace an object", path: path(of: digest))
        }
    }

    /// Puts an object on the medium that another process may have stored without, if it is there.
    ///
    /// For a durable store only.
    func synchronizeIfDurable(_ digest: Digest) throws(StoreError) {
        guard isDurable else { return }
        try describing("synchronize an object", self.path(of: digest)) { () throws(Errno) in
            _ = try ifExists { () throws(Errno) in
                try openFile(digest).synchronize()
                try synchronizeNames(of: digest)
            }
        }
    }

    private func synchronizeNames(of digest: Digest) throws(Errno) {
        try directory.objects.openDirectory(StoreLayout.shard(of: digest)).synchronize()
        try directory.objects.synchronize()
    }

    /// Deletes an object; false where it was gone.
    ///
    /// The caller holds its stripe exclusively.
    func delete(_ digest: Digest) throws(StoreError) -> Bool {
        try describing("delete an object", self.path(of: digest)) { () throws(Errno) in
            try ifFiled { () throws(Errno) in
                try directory.objects.unlink(StoreLayout.path(of: digest))
            } != nil
        }
    }
}

/// A new object that has no name among the objects yet.
enum StagedObject: ~Copyable {
    /// Known to nobody else (O_TMPFILE).
    case unnamed(FileDescriptor)
    /// In `tmp/`, where there are no unnamed files.
    case named(TemporaryFile)

    borrowing func withFile<Value>(
        _ body: (borrowing FileDescriptor) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        switch self {
        case .unnamed(let file): try body(file)
        case .named(let temporary): try body(temporary.file)
        }
    }
}

/// A new object made from a file, and what turned out to be in it.
package struct StagedCopy: ~Copyable {
    let object: StagedObject
    package let content: Content
    /// Where its length was known before it was copied; forgotten where it is not put.
    var claim: RoomClaim?

    init(object: consuming StagedObject, content: Content) {
        self.object = object
        self.content = content
    }
}

extension Directory {
    /// Runs `body`, and once more after making the shard of `digest` where that was missing.
    func makingShard<Value: ~Copyable>(
        of digest: Digest,
        _ body: () throws(Errno) -> Value
    ) throws(Errno) -> Value {
        do throws(Errno) {
            return try body()
        } catch {
            guard error == .noEntry else { throw error }
            try makeDirectoryIfMissing(StoreLayout.shard(of: digest), mode: FileMode.directory)
            return try body()
        }
    }
}

extension Errno {
    /// What opening or reading says of a symbolic link, a directory, a pipe, a socket or a device.
    var tellsOfNoFile: Bool {
        self == .tooManyLinks || self == .isDirectory || self == .noDeviceOrAddress
    }

    /// What a look at a file in a shard says where there is none: the shard may be no directory.
    var tellsOfNothing: Bool { self == .noEntry || self == .notDirectory }
}

/// Gives nil where there is no such file in a shard, nor can be; every other error stays one.
func ifFiled<Value: ~Copyable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        // A link in the shard's place may lead to itself.
        if error.tellsOfNothing || error == .tooManyLinks { return nil }
        throw error
    }
}
