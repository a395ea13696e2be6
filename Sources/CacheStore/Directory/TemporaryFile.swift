// SPDX-License-Identifier: Apache-2.0

import Platform

/// A file on its way to its place: with a name in `tmp/`, or with none yet (O_TMPFILE).
///
/// While it lives it is locked, if it has a name, so that a sweep can tell it from one whose process was killed; the
/// name goes when this value does, unless it was renamed away.
struct TemporaryFile: ~Copyable {
    let file: FileDescriptor
    private let store: StoreDirectory
    private var place: (area: TemporaryArea, name: RelativePath)?
    /// Bytes on disk, once it is written.
    var allocatedSize: Int64 = 0
    /// Whether it keeps a name in `tmp/` as it may have got its place.
    private(set) var isKept = false

    /// Creates one with a name that is in use nowhere.
    init(in store: StoreDirectory, mode: UInt32) throws(Errno) {
        let area = try TemporaryArea(of: store)
        while true {
            let name = StoreLayout.freshTemporary()
            let file = try area.directory.open(name, [.readWrite, .create, .exclusive], mode: mode)
            // A sweep may have found it before it was locked, and taken it for a leftover.
            if try file.tryLock(.exclusive), try file.status().linkCount > 0 {
                self.file = file
                self.store = store
                place = (area, name)
                return
            }
            // One that only looks, in a dry run, leaves it; it is not used, so away with it.
            bestEffort { () throws(Errno) in try area.directory.unlink(name) }
        }
    }

    /// Takes over a file without a name.
    init(unnamed file: consuming FileDescriptor, in store: StoreDirectory) {
        self.file = file
        self.store = store
    }

    /// Takes over a file that is locked and has a name of its own in `tmp/`.
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
        // Gone already when it was renamed; whatever else keeps it there, the next sweep removes it.
        if let place { bestEffort { () throws(Errno) in try place.area.directory.unlink(place.name) } }
    }

    /// Gives it its place: one with a name replaces what is there, of one without this is false where there is something.
    borrowing func publish(in target: borrowing Directory, _ path: RelativePath) throws(Errno) -> Bool {
        if place != nil {
            try rename(to: target, path)
            return true
        }
        do throws(Errno) {
            return try unlessExists { () throws(Errno) in try target.link(file, as: path) }
        } catch {
            guard error.leavesCopy else { throw error }
            try target.publish(copyOf: file, as: path)
            return true
        }
    }

    /// Moves one with a name to its place, replacing what is there.
    borrowing func rename(to target: borrowing Directory, _ path: RelativePath) throws(Errno) {
        guard let place else { throw .noEntry }
        do throws(Errno) {
            try place.area.directory.rename(place.name, to: target, path)
        } catch {
            guard error.leavesCopy else { throw error }
            try target.publish(copyOf: file, as: path)
        }
    }

    /// Replaces the file at `path` in one step.
    mutating func replace(in target: borrowing Directory, _ path: RelativePath) throws(Errno) {
        do throws(Errno) {
            try giveName()
        } catch {
            guard error.leavesCopy else { throw error }
            return try target.publish(copyOf: file, as: path)
        }
        try rename(to: target, path)
    }

    /// Gives it a name in `tmp/` if it has none, locked before anybody can see it.
    mutating func giveName() throws(Errno) {
        if place != nil { return }
        let (area, name) = (try TemporaryArea(of: store), StoreLayout.freshTemporary())
        _ = try file.tryLock(.exclusive)
        try area.directory.link(file, as: name)
        place = (area, name)
    }

    /// Has it keep a name in `tmp/`, also after it was renamed away, so that no sweep sets its blocks free.
    mutating func keepName() throws(Errno) {
        isKept = true
        guard let place else { return try giveName() }
        try unlessExists { () throws(Errno) in try place.area.directory.link(file, as: place.name) }
    }
}

extension Directory {
    /// Writes a copy of `file`, under another name in the same directory, and gives it the name `path`, replacing what is
    /// there, in one step.
    ///
    /// Needs no link, and no rename between directories. The copy is on the medium before it has the name, as the file may
    /// have to be. A crash leaves a `put-` file that nobody has locked, which the next collection deletes.
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

/// The open `tmp/`, made anew where somebody has removed it.
final class TemporaryArea: Sendable {
    let directory: Directory

    init(of store: StoreDirectory) throws(Errno) {
        directory = try store.root.making(StoreLayout.temporaries) { () throws(Errno) in
            try store.root.openDirectory(StoreLayout.temporaries)
        }
    }
}

extension Directory {
    /// Runs `body`, and once more after making the directory of that name where it was missing.
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
