// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// Where a file of the user's is to be written: a path gone through step by step, as path_resolution(7) says, but
/// that nothing counts which somebody else may have planted.
///
/// A symbolic link is followed, and something other than a regular file written to, only if it belongs to this
/// user or to root, or if nobody else can have put it where it is. That is stricter than fs.protected_symlinks of
/// proc_sys_fs(5), which looks at the last link only, and may be off.
struct OutputPlace: ~Copyable {
    /// What is there already.
    enum Content: Equatable {
        case nothing
        case file(FileStatus)
        /// A device or a pipe.
        case special(FileStatus.Identity)
        /// A link of proc(5), which stands for something open, whatever its text says.
        case open
    }

    /// The directory that the last name is in; to go through, not to read.
    let directory: Directory
    let name: String
    let content: Content

    /// Links that are followed before they count as a circle, path_resolution(7).
    private static let longestChain = 40

    init(_ path: String) throws(Errno) {
        var names = Self.names(in: path)
        var current = try Self.start(of: path)
        var links = 0
        while let name = names.popLast() {
            let isLast = names.isEmpty
            if name == "." || name == ".." {
                current = try Self.step(name, from: current)
                continue
            }
            guard let status = try Self.status(of: name, in: current) else {
                guard isLast else { throw .noEntry }
                self.init(current, name, .nothing)
                return
            }
            switch status.kind {
            case .directory:
                current = try Self.step(name, from: current)
            case .regular:
                guard isLast else { throw .notDirectory }
                self.init(current, name, .file(status))
                return
            case .other:
                guard isLast else { throw .notDirectory }
                try Self.check(status, in: current)
                self.init(current, name, .special(status.identity))
                return
            case .symbolicLink:
                try Self.check(status, in: current)
                links += 1
                if links > Self.longestChain { throw .tooManyLinks }
                if try Self.isOfKernel(current) {
                    if isLast {
                        self.init(current, name, .open)
                        return
                    }
                    current = try Self.step(name, from: current, isFollowing: true)
                    continue
                }
                let target = try Self.target(of: name, in: current)
                if target.hasPrefix("/") { current = try Self.start(of: target) }
                names += Self.names(in: target)
            }
        }
        throw path.isEmpty ? .noEntry : .isDirectory
    }

    private init(_ directory: consuming Directory, _ name: String, _ content: Content) {
        self.directory = directory
        self.name = name
        self.content = content
    }

    /// Whether nobody but the user and root can have put a file where it is.
    ///
    /// In a directory that others may write, they may have hung up another name of a file of the user's.
    static func isTrusted(
        owner: UInt32,
        names: UInt64,
        directoryOwner: UInt32,
        directoryMode: UInt32,
        user: UInt32
    ) -> Bool {
        let trusted = [user, 0]
        if trusted.contains(directoryOwner), directoryMode & 0o022 == 0 { return true }
        return trusted.contains(owner) && names == 1
    }

    /// Whether nobody but the user and root can have put this file into `directory`.
    static func isTrusted(_ file: FileStatus, in directory: borrowing Directory) throws(Errno) -> Bool {
        let place = try directory.descriptor.status()
        return isTrusted(
            owner: file.owner,
            names: file.linkCount,
            directoryOwner: place.owner,
            directoryMode: place.permissions,
            user: CurrentProcess.effectiveUser
        )
    }

    private static func check(_ file: FileStatus, in directory: borrowing Directory) throws(Errno) {
        if try !isTrusted(file, in: directory) { throw .accessDenied }
    }

    // MARK: Steps

    /// The last name first.
    ///
    /// A slash at the end asks for a directory.
    private static func names(in path: String) -> [String] {
        var names = path.split(separator: "/").reversed().map(String.init)
        if path.hasSuffix("/") { names.insert(".", at: 0) }
        return names
    }

    private static func start(of path: String) throws(Errno) -> Directory {
        let flags = OpenFlags([.readOnly, .directory]).rawValue | cplatform_O_PATH
        return Directory(
            owning: try FileDescriptor(
                opening: path.hasPrefix("/") ? "/" : ".",
                OpenFlags(rawValue: flags)
            )
        )
    }

    private static func step(
        _ name: String,
        from directory: borrowing Directory,
        isFollowing: Bool = false
    ) throws(Errno) -> Directory {
        let flags = O_DIRECTORY | O_CLOEXEC | cplatform_O_PATH | (isFollowing ? 0 : O_NOFOLLOW)
        let number = try valueOrErrno { unsafe openat(directory.descriptor.rawValue, name, flags) }
        return Directory(owning: FileDescriptor(owning: number))
    }

    /// nil where there is none.
    private static func status(
        of name: String,
        in directory: borrowing Directory
    ) throws(Errno) -> FileStatus? {
        let number = directory.descriptor.rawValue
        return try ifExists { () throws(Errno) in
            var status = stat()
            try nothingOrErrno { unsafe fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) }
            return FileStatus(status)
        }
    }

    /// Whether it is of proc(5), by its magic number in linux/magic.h.
    private static func isOfKernel(_ directory: borrowing Directory) throws(Errno) -> Bool {
        try directory.descriptor.fileSystem().kind.magic == 0x9FA0
    }

    private static func target(of name: String, in directory: borrowing Directory) throws(Errno) -> String {
        let number = directory.descriptor.rawValue
        var failure: Errno?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            do throws(Errno) {
                count = try valueOrErrno {
                    let text = unsafe UnsafeMutableRawPointer(base).assumingMemoryBound(to: CChar.self)
                    return unsafe readlinkat(number, name, text, buffer.count)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        // Its repaired form would be another name.
        guard let text = String(validating: bytes, as: UTF8.self) else { throw Errno(rawValue: EILSEQ) }
        return text
    }
}
