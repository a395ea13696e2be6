// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file of the user's that is written whole or not at all.
package enum OutputFile {
    /// Writes `path` by way of a new file beside it, which takes its place when `body` has returned.
    ///
    /// Symbolic links are followed, and the file that they lead to is replaced. The new file's permissions and
    /// group are those of a file that it replaces, if that belongs to this user, but never set-user-id,
    /// set-group-id or sticky; else they are those of any new file. What is no regular file (a device, a pipe)
    /// and what is another name of an open file (`/dev/stdout`) is written to directly. Where there are unnamed
    /// files an interruption leaves nothing behind, but in the instant between giving the new file a name and
    /// moving it to its place.
    ///
    /// - Throws: ``Errno/accessDenied`` also for a link, a device or a pipe that somebody else may have planted:
    ///   it belongs neither to this user nor to root, and others may write the directory that it is in.
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
            // Put there since it was looked at.
            guard try file.status().identity == identity else { throw .accessDenied }
            try body(file)
        case .open: try body(open(place, 0))
        }
    }

    /// Sets the time of modification of the regular file at `path`, and leaves that of access.
    ///
    /// Does nothing for any other kind of file.
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

    /// Names that any system has for what a process has open; they work where there is no /proc, too.
    private static func ownDescriptor(_ path: String) -> CInt? {
        switch path {
        case "/dev/stdout": STDOUT_FILENO
        case "/dev/stderr": STDERR_FILENO
        default: path.hasPrefix("/dev/fd/") ? CInt(path.dropFirst(8)) : nil
        }
    }

    /// Opened anew, an open file starts at its beginning: what is there already must not be lost.
    private static func open(_ place: borrowing OutputPlace, _ flag: CInt) throws(Errno) -> FileDescriptor {
        let (number, name) = (place.directory.descriptor.rawValue, place.name)
        let flags = O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC | flag
        return FileDescriptor(
            owning: try unsafe name.withPath { (name) throws(Errno) in
                try systemCall(.open) { unsafe openat(number, name, flags) }
            }
        )
    }

    /// Whether a file's permissions are what its user wants of the one that takes its place.
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

    /// What takes the place of a private file is private from its first byte on, as a kill would leave it so for ever.
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

    /// Leaves nothing of the draft and throws what went wrong, which matters more than what may go wrong now.
    private static func remove(
        _ draft: RelativePath,
        in directory: borrowing Directory,
        after failure: Errno
    ) throws(Errno) {
        _ = Result { () throws(Errno) in try directory.unlink(draft) }
        throw failure
    }

    /// Less the umask, as a shell's redirection makes it.
    private static let newFileMode: UInt32 = 0o666

    /// Gives a file the permissions and the group of the one whose place it takes, if there is one.
    private static func finish(_ file: borrowing FileDescriptor, like old: FileStatus?) throws(Errno) {
        guard let old else { return }
        // What ran as its owner ran a program that its owner had put there.
        var mode = old.permissions & 0o777
        if try file.status().group != old.group {
            do throws(Errno) {
                try file.setOwner(nil, group: old.group)
            } catch {
                // What one group was allowed is nothing to another: it may what all others may.
                mode = mode & 0o707 | (mode & 0o007) << 3
            }
        }
        try file.setMode(mode)
    }
}
