// SPDX-License-Identifier: Apache-2.0

import Platform

/// A file in `tmp/` that is to be renamed to its place: where a file has to replace another one, or where
/// there are no unnamed files.
///
/// While it lives it is locked, so that a sweep can tell it from one whose process was killed; the name
/// goes when this value does, unless it was renamed away.
struct TemporaryFile: ~Copyable {
    let file: FileDescriptor
    private let directory: TemporaryArea
    private let name: RelativePath

    /// Creates one with a name that is in use nowhere.
    init(in store: StoreDirectory, mode: UInt32) throws(Errno) {
        let directory = try TemporaryArea(of: store)
        while true {
            let name = Self.freshName()
            let file = try directory.directory.open(name, [.readWrite, .create, .exclusive], mode: mode)
            // A sweep may have found it before it was locked, and taken it for a leftover.
            if try file.tryLock(.exclusive), try file.status().linkCount > 0 {
                self.init(file: file, directory: directory, name: name)
                return
            }
            // One that only looks, in a dry run, leaves it; it is not used, so away with it.
            bestEffort { () throws(Errno) in try directory.directory.unlink(name) }
        }
    }

    /// Gives an unnamed file a name in `tmp/`, locked before anybody can see it.
    init(naming unnamed: consuming FileDescriptor, in store: StoreDirectory) throws(Errno) {
        let directory = try TemporaryArea(of: store)
        let name = Self.freshName()
        _ = try unnamed.tryLock(.exclusive)
        try directory.directory.link(unnamed, as: name)
        self.init(file: unnamed, directory: directory, name: name)
    }

    private init(file: consuming FileDescriptor, directory: TemporaryArea, name: RelativePath) {
        self.file = file
        self.directory = directory
        self.name = name
    }

    deinit {
        // Gone already when it was renamed; whatever else keeps it there, the next sweep removes it.
        bestEffort { () throws(Errno) in try directory.directory.unlink(name) }
    }

    /// Moves it to its place, replacing what is there.
    func rename(to target: borrowing Directory, _ path: RelativePath) throws(Errno) {
        try directory.directory.rename(name, to: target, path)
    }

    /// Has it keep a name in `tmp/`, also after it was renamed away, so that no sweep sets its blocks free.
    func keepName() throws(Errno) {
        do throws(Errno) {
            try directory.directory.link(file, as: name)
        } catch {
            if error != .exists { throw error }
        }
    }

    private static func freshName() -> RelativePath {
        var generator = SystemRandomNumberGenerator()
        return RelativePath("put-" + String(generator.next(), radix: 36))
    }

    /// The path of a file in `tmp/` that bears a name of ours; nil for anybody else's.
    static func path(ofOwn name: String) -> RelativePath? {
        let isOwn = name.hasPrefix("put-") || name.hasPrefix("setup-")
        return isOwn && name.utf8.count <= RelativePath.capacity ? RelativePath(name) : nil
    }
}

/// The open `tmp/`, made anew where somebody has removed it.
final class TemporaryArea {
    let directory: Directory

    init(of store: StoreDirectory) throws(Errno) {
        let present = try ifExists { () throws(Errno) in
            try store.root.openDirectory(StoreLayout.temporaries)
        }
        guard let present else {
            try store.root.makeDirectoryIfMissing(StoreLayout.temporaries, mode: FileMode.directory)
            directory = try store.root.openDirectory(StoreLayout.temporaries)
            return
        }
        directory = present
    }
}

/// Runs what may fail without harm: the caller says above why, and what makes up for it.
func bestEffort(_ body: () throws(Errno) -> Void) {
    do throws(Errno) {
        try body()
    } catch {
        return
    }
}
