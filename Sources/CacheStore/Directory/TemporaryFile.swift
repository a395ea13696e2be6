// SPDX-License-Identifier: Apache-2.0

import Platform

/// A file that is not in its final place yet: it has a temporary name, or is still unnamed (O_TMPFILE).
///
/// A named file is locked while this value exists, so that a sweep can distinguish it from one whose process was killed. The
/// name is removed with this value, unless the file was renamed.
struct TemporaryFile: ~Copyable {
    let file: FileDescriptor
    private let store: StoreDirectory
    private var place: (area: TemporaryArea, name: RelativePath)?
    /// Whether the file has a name, so that publishing it replaces an existing file.
    var isNamed: Bool { place != nil }
    /// The bytes on disk, once the file is written.
    var allocatedSize: Int64 = 0

    /// Creates a file with an unused name, in `tmp/` or in the root.
    init(in store: StoreDirectory, mode: UInt32, isInRoot: Bool = false) throws(Errno) {
        let area = try isInRoot ? TemporaryArea(inRootOf: store) : TemporaryArea(of: store)
        while true {
            let name = StoreLayout.freshTemporary()
            let file = try area.directory.open(name, [.readWrite, .create, .exclusive], mode: mode)
            // A sweep may have found the file before it was locked, and deleted it as a leftover.
            if try file.tryLock(.exclusive), try file.status().linkCount > 0 {
                self.file = file
                self.store = store
                place = (area, name)
                return
            }
            // A dry run only tests the lock and does not delete the file. This file is not used, so delete it here.
            bestEffort { () throws(Errno) in try area.directory.unlink(name) }
        }
    }

    /// Takes over an unnamed file.
    init(unnamed file: consuming FileDescriptor, in store: StoreDirectory) {
        self.file = file
        self.store = store
    }

    /// Takes over a file that is locked and has its own name in `tmp/`.
    init(
        named name: RelativePath,
        _ file: consuming FileDescriptor,
        _ area: TemporaryArea,
        in store: StoreDirectory
    ) {
        self.file = file
        self.store = store
        place = (area, name)
    }

    deinit {
        // The name is gone if the file was renamed; if it can't be removed for another reason, the next sweep removes it.
        if let place { bestEffort { () throws(Errno) in try place.area.directory.unlink(place.name) } }
    }

    /// Puts the file in its place.
    ///
    /// A named file replaces an existing one; for an unnamed file, the result is false if the place is taken.
    borrowing func publish(in target: borrowing Directory, _ path: RelativePath) throws(Errno) -> Bool {
        if place != nil {
            try rename(to: target, path)
            return true
        }
        do throws(Errno) {
            try target.link(file, as: path)
        } catch {
            if error == .exists { return false }
            guard error.leavesCopy else { throw error }
            try target.publish(copyOf: file, as: path)
        }
        return true
    }

    /// Moves a named file to its place, replacing an existing file.
    borrowing func rename(to target: borrowing Directory, _ path: RelativePath) throws(Errno) {
        guard let place else { throw .noEntry }
        do throws(Errno) {
            try place.area.directory.rename(place.name, to: target, path)
        } catch {
            guard error.leavesCopy else { throw error }
            try target.publish(copyOf: file, as: path)
        }
    }

    /// Replaces the file at `path` atomically.
    mutating func replace(in target: borrowing Directory, _ path: RelativePath) throws(Errno) {
        do throws(Errno) {
            try giveName()
        } catch {
            guard error.leavesCopy else { throw error }
            return try target.publish(copyOf: file, as: path)
        }
        try rename(to: target, path)
    }

    /// Gives the file a name in `tmp/` if it has none, locked before other processes can see it.
    mutating func giveName() throws(Errno) {
        if place != nil { return }
        let (area, name) = (try TemporaryArea(of: store), StoreLayout.freshTemporary())
        _ = try file.tryLock(.exclusive)
        try area.directory.link(file, as: name)
        place = (area, name)
    }

    /// Keeps a name in `tmp/`, even after the file was renamed, so that no sweep frees its blocks.
    mutating func keepName() throws(Errno) {
        guard let place else { return try giveName() }
        try unlessExists { () throws(Errno) in try place.area.directory.link(file, as: place.name) }
    }
}

extension Directory {
    /// Writes a copy of `file` under another name in the same directory, and renames it atomically to `path`, replacing an
    /// existing file.
    ///
    /// It needs no link, and no rename between directories. The copy is synced to the medium before it gets the name, as
    /// the file may have to be. A crash leaves an unlocked `put-` file, which the next collection deletes.
    func publish(copyOf file: borrowing FileDescriptor, as path: RelativePath) throws(Errno) {
        let status = try file.status()
        let place = path.description
        let folder = place.lastIndex(of: "/").map { String(place[...$0]) } ?? ""
        let name = RelativePath(folder + StoreLayout.freshTemporary().description)
        let copy = try open(name, [.readWrite, .create, .exclusive], mode: status.permissions)
        do throws(Errno) {
            _ = try copy.tryLock(.exclusive)
            try file.rewind()
            try copy.copyAll(from: file)
            try copy.setAccessTime(status.accessed)
            try copy.synchronize()
            try rename(name, to: self, path)
        } catch {
            bestEffort { () throws(Errno) in try unlink(name) }
            throw error
        }
    }
}

/// The open directory of temporary names: `tmp/`, which is recreated if it was removed, or the root.
final class TemporaryArea: Sendable {
    let directory: Directory

    init(of store: StoreDirectory) throws(Errno) {
        directory = try store.root.making(StoreLayout.temporaries) { () throws(Errno) in
            try store.root.openDirectory(StoreLayout.temporaries)
        }
    }

    init(inRootOf store: StoreDirectory) throws(Errno) {
        directory = try store.root.openDirectory(".")
    }
}

extension Directory {
    /// Runs `body`; if the named directory is missing, creates it and runs `body` again.
    func making<Value: ~Copyable>(
        _ name: @autoclosure () -> RelativePath,
        _ body: () throws(Errno) -> Value
    ) throws(Errno) -> Value {
        do throws(Errno) {
            return try body()
        } catch {
            guard error == .noEntry else { throw error }
            try makeDirectoryIfMissing(name(), mode: FileMode.directory)
            return try body()
        }
    }
}
