// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The destination of an output file of the user.
///
/// The path is resolved step by step as in path_resolution(7), except that files that another user may have planted are
/// refused.
///
/// A symbolic link is followed, and a non-regular file is written to, only if no other user can have put it there, or if
/// it has a single name and belongs to this user or to root. That is stricter than fs.protected_symlinks of
/// proc_sys_fs(5), which checks only the last link, and may be off.
struct OutputPlace: ~Copyable {
    /// The existing file at the destination.
    enum Content: Equatable {
        case nothing
        case file(FileStatus)
        /// A device or a pipe.
        case special(FileStatus.Identity)
        /// A symbolic link in proc(5), which leads to an open file, whatever its text is.
        case open
    }

    /// The directory that contains the last name; opened for traversal, not for reading.
    let directory: Directory
    let name: String
    let content: Content

    /// The number of symbolic links that may be followed; more count as a loop, path_resolution(7).
    private static let longestChain = 40

    /// Resolves `path`.
    ///
    /// - Throws: Also ``Errno/accessDenied`` for a link, or a file that is not regular, that another user may have
    ///   planted.
    static func find(_ path: String) throws(Errno) -> OutputPlace {
        var names = names(in: path)
        var current = try start(of: path)
        var links = 0
        while let name = names.popLast() {
            let isLast = names.isEmpty
            guard let status = try status(of: name, in: current) else {
                if isLast { return OutputPlace(directory: current, name: name, content: .nothing) }
                throw .noEntry
            }
            switch status.kind {
            case .directory:
                current = try step(name, from: current)
            case .regular, .other:
                guard isLast else { throw .notDirectory }
                if status.kind == .other { try check(status, in: current) }
                let content: Content = status.kind == .regular ? .file(status) : .special(status.identity)
                return OutputPlace(directory: current, name: name, content: content)
            case .symbolicLink:
                try check(status, in: current)
                links += 1
                if links > longestChain { throw .tooManyLinks }
                // A link in proc(5), recognized by the magic number from linux/magic.h.
                if try current.descriptor.fileSystem().kind.magic == 0x9FA0 {
                    if isLast { return OutputPlace(directory: current, name: name, content: .open) }
                    current = try step(name, from: current, isFollowing: true)
                    continue
                }
                let target = try target(of: name, in: current)
                if target.hasPrefix("/") { current = try start(of: target) }
                names += Self.names(in: target)
            }
        }
        throw path.isEmpty ? .noEntry : .isDirectory
    }

    /// Whether only the user and root can have put `file` into the directory `place`.
    ///
    /// Other users who can write the directory may have linked a file of the user there, so a file with several names is
    /// not trusted.
    static func isTrusted(
        _ file: FileStatus,
        in place: FileStatus,
        user: UInt32 = CurrentProcess.effectiveUser
    ) -> Bool {
        let trusted = [user, 0]
        if trusted.contains(place.owner), place.permissions & 0o022 == 0 { return true }
        return trusted.contains(file.owner) && file.linkCount == 1
    }

    private static func check(_ file: FileStatus, in directory: borrowing Directory) throws(Errno) {
        if try !isTrusted(file, in: directory.descriptor.status()) { throw .accessDenied }
    }

    // MARK: Steps

    /// Returns the names in a path, the last one first.
    ///
    /// A trailing slash requires a directory.
    private static func names(in path: String) -> [String] {
        var names = path.split(separator: "/").reversed().map(String.init)
        if path.hasSuffix("/") { names.insert(".", at: 0) }
        return names
    }

    private static func start(of path: String) throws(Errno) -> Directory {
        let flags = OpenFlags(rawValue: O_RDONLY | O_DIRECTORY | cplatform_O_PATH)
        return Directory(owning: try FileDescriptor(opening: path.hasPrefix("/") ? "/" : ".", flags))
    }

    private static func step(
        _ name: String,
        from directory: borrowing Directory,
        isFollowing: Bool = false
    ) throws(Errno) -> Directory {
        let flags = O_DIRECTORY | O_CLOEXEC | cplatform_O_PATH | (isFollowing ? 0 : O_NOFOLLOW)
        let number = try unsafe name.withPath { (name) throws(Errno) in
            try systemCall(.open) { unsafe openat(directory.descriptor.rawValue, name, flags) }
        }
        return Directory(owning: FileDescriptor(owning: number))
    }

    /// Returns the status of a name; nil if it does not exist.
    private static func status(
        of name: String,
        in directory: borrowing Directory
    ) throws(Errno) -> FileStatus? {
        let number = directory.descriptor.rawValue
        return try ifExists { () throws(Errno) in
            try unsafe name.withPath { (name) throws(Errno) in
                try FileStatus { unsafe fstatat(number, name, &$0, AT_SYMLINK_NOFOLLOW) }
            }
        }
    }

    private static func target(of name: String, in directory: borrowing Directory) throws(Errno) -> String {
        let number = directory.descriptor.rawValue
        let bytes = try unsafe [UInt8](upTo: Int(PATH_MAX)) { (buffer) throws(Errno) in
            guard let text = unsafe buffer.assumingMemoryBound(to: CChar.self).baseAddress else { return 0 }
            return try unsafe name.withPath { (name) throws(Errno) in
                try systemCall(.readLink) { unsafe readlinkat(number, name, text, buffer.count) }
            }
        }
        return String(pathBytes: bytes)
    }
}
