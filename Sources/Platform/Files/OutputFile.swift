// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Functions that write an output file of the user atomically: completely or not at all.
package enum OutputFile {
    /// Writes a new file next to `path`, which replaces `path` after `body` has returned.
    ///
    /// Symbolic links are followed, and the file that they lead to is replaced. The new file gets the permissions and the
    /// group of the file that it replaces, if that file belongs to this user and no other user can have linked it there;
    /// but never set-user-id, set-group-id or sticky. Otherwise it gets those of any new file. A file that is not regular
    /// (a device, a pipe) or is another name of an open file (`/dev/stdout`) is written directly. If the file system
    /// supports unnamed files, an interruption leaves no file behind, except in the instant between linking the new file
    /// at a temporary name and renaming it.
    ///
    /// - Throws: ``Errno/accessDenied`` also for a symbolic link, a device or a pipe that another user may have planted:
    ///   other users have write access to its directory, and it belongs neither to this user nor to root, or has several
    ///   names.
    package static func write(
        _ path: String,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        if let number = ownDescriptor(path) { return try body(FileDescriptor.duplicate(number)) }
        let place = try OutputPlace.find(path)
        switch place.content {
        case .nothing: try replace(place, body)
        case .file(let old): try replace(place, like: isExample(old, at: place) ? old : nil, body)
        case .special(let identity):
            let file = try open(place, O_NOFOLLOW)
            // A different identity means that the file was replaced after the check.
            guard try file.status().identity == identity else { throw .accessDenied }
            try body(file)
        case .open: try body(open(place, 0))
        }
    }

    /// Sets the modification time of the regular file at `path`, and leaves its access time unchanged.
    ///
    /// It does nothing for any other kind of file.
    ///
    /// C: `stat`, `utimensat`.
    package static func setModified(_ path: String, to time: Timestamp) throws(Errno) {
        guard ownDescriptor(path) == nil, try FileStatus.of(path).kind == .regular else { return }
        try unsafe time.withModificationTimes { (times) throws(Errno) in
            _ = try unsafe path.withPath { (path) throws(Errno) in
                try systemCall(.setTimes) { unsafe utimensat(AT_FDCWD, path, times, 0) }
            }
        }
    }

    /// Returns the descriptor that `path` denotes if it is a standard name of an open file; nil for any other path.
    ///
    /// The names also work if /proc is not mounted.
    private static func ownDescriptor(_ path: String) -> CInt? {
        switch path {
        case "/dev/stdout": STDOUT_FILENO
        case "/dev/stderr": STDERR_FILENO
        default: path.hasPrefix("/dev/fd/") ? CInt(path.dropFirst(8)) : nil
        }
    }

    /// Opens the file for appending.
    ///
    /// A file that is opened again starts at offset 0, so that writing without O_APPEND would overwrite its content.
    private static func open(_ place: borrowing OutputPlace, _ flag: CInt) throws(Errno) -> FileDescriptor {
        let (number, name) = (place.directory.descriptor.rawValue, place.name)
        let flags = O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC | flag
        return FileDescriptor(
            owning: try unsafe name.withPath { (name) throws(Errno) in
                try systemCall(.open) { unsafe openat(number, name, flags) }
            }
        )
    }

    /// Whether the replacement gets the permissions of `file`, because this user chose them.
    private static func isExample(_ file: FileStatus, at place: borrowing OutputPlace) throws(Errno) -> Bool {
        guard file.owner == CurrentProcess.effectiveUser else { return false }
        return try OutputPlace.isTrusted(file, in: place.directory.descriptor.status())
    }

    private static func replace(
        _ place: borrowing OutputPlace,
        like old: FileStatus? = nil,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        var generator = SystemRandomNumberGenerator()
        let draft = RelativePath(".\(String(generator.next(), radix: 36)).part")
        if Directory.canLinkUnnamed, let unnamed = try place.directory.openUnnamed(mode: newFileMode) {
            try body(unnamed)
            try finish(unnamed, like: old)
            try place.directory.link(unnamed, as: draft)
        } else {
            try make(draft, in: place.directory, like: old, body)
        }
        do throws(Errno) {
            let (number, name) = (place.directory.descriptor.rawValue, place.name)
            _ = try unsafe name.withPath { (name) throws(Errno) in
                try systemCall(.rename) { unsafe renameat(number, draft.description, number, name) }
            }
        } catch {
            try remove(draft, in: place.directory, after: error)
        }
    }

    /// Writes a draft under a name.
    ///
    /// The replacement of a private file is private from its first byte on, because a process that is killed leaves the
    /// draft forever.
    static func make(
        _ draft: RelativePath,
        in directory: borrowing Directory,
        like old: FileStatus?,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        let mode = old == nil ? newFileMode : 0o600
        let file = try directory.open(draft, [.readWrite, .create, .exclusive], mode: mode)
        do throws(Errno) {
            try body(file)
            try finish(file, like: old)
        } catch {
            try remove(draft, in: directory, after: error)
        }
    }

    /// Deletes the draft and throws the original error, which matters more than an error of the deletion.
    private static func remove(
        _ draft: RelativePath,
        in directory: borrowing Directory,
        after failure: Errno
    ) throws(Errno) {
        _ = Result { () throws(Errno) in try directory.unlink(draft) }
        throw failure
    }

    /// The mode before the umask, as for a shell's redirection.
    private static let newFileMode: UInt32 = 0o666

    /// Gives a file the permissions and the group of the file that it replaces, if any.
    private static func finish(_ file: borrowing FileDescriptor, like old: FileStatus?) throws(Errno) {
        guard let old else { return }
        // Only the permission bits: a set-user-id file must contain only a program that its owner chose.
        var mode = old.permissions & 0o777
        if try file.status().group != old.group {
            do throws(Errno) {
                try file.setOwner(nil, group: old.group)
            } catch {
                // The old group's permissions must not apply to a different group, which gets the permissions of all
                // other users instead.
                mode = mode & 0o707 | (mode & 0o007) << 3
            }
        }
        try file.setMode(mode)
    }
}
