// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// An open directory, below which everything is reached by the kernel's *at calls.
///
/// No call follows a symbolic link, neither at the end of a path nor inside it, where the kernel can
/// be told so (openat2(2)). A directory that is renamed stays the same one here.
package struct Directory: ~Copyable, Sendable {
    package let descriptor: FileDescriptor

    /// Takes over a descriptor that was opened with O_DIRECTORY.
    package init(owning descriptor: consuming FileDescriptor) {
        self.descriptor = descriptor
    }

    /// Opens a directory of the user's, following symbolic links.
    ///
    /// C: `open`.
    package init(opening path: String) throws(Errno) {
        self.init(owning: try FileDescriptor(opening: path, [.readOnly, .directory]))
    }

    /// Opens a directory below this one.
    ///
    /// C: `openat2`.
    ///
    /// - Throws: ``Errno/notDirectory`` for anything else, ``Errno/tooManyLinks`` or that for a symbolic link.
    package func openDirectory(_ path: RelativePath) throws(Errno) -> Directory {
        Directory(owning: FileDescriptor(owning: try openDirectoryNumber(path)))
    }

    /// The same for who sees to the closing.
    func openDirectoryNumber(_ path: RelativePath) throws(Errno) -> CInt {
        try unsafe path.withCString { (path) throws(Errno) in
            try valueOrErrno {
                unsafe cplatform_openat_nofollow(
                    descriptor.rawValue,
                    path,
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                    0
                )
            }
        }
    }

    /// Opens or creates a regular file below this one.
    ///
    /// Whoever may write here can have put anything in a file's place. Whatever it is, this does not wait for it,
    /// and gives it to nobody.
    ///
    /// C: `openat2`, and `fstat` unless this call makes the file for sure (O_EXCL, O_TMPFILE).
    ///
    /// - Throws: ``Errno/tooManyLinks`` for a symbolic link, ``Errno/isDirectory`` for a directory,
    ///   ``Errno/noDeviceOrAddress`` for a pipe, a socket or a device.
    package func open(
        _ path: RelativePath,
        _ flags: OpenFlags,
        mode: UInt32 = 0
    ) throws(Errno) -> FileDescriptor {
        let number = try unsafe path.withCString { (path) throws(Errno) in
            try valueOrErrno {
                unsafe cplatform_open_regular(descriptor.rawValue, path, flags.rawValue, mode)
            }
        }
        return FileDescriptor(owning: number)
    }

    /// Creates a directory.
    ///
    /// C: `mkdirat`.
    package func makeDirectory(_ path: RelativePath, mode: UInt32) throws(Errno) {
        try unsafe path.withCString { (path) throws(Errno) in
            try nothingOrErrno { unsafe mkdirat(descriptor.rawValue, path, mode) }
        }
    }

    /// Creates a directory, unless there is one.
    ///
    /// C: `mkdirat`.
    package func makeDirectoryIfMissing(_ path: RelativePath, mode: UInt32) throws(Errno) {
        do throws(Errno) {
            try makeDirectory(path, mode: mode)
        } catch {
            if error != .exists { throw error }
        }
    }

    /// Creates a directory at a path of the user's.
    ///
    /// C: `mkdir`.
    package static func make(_ path: String, mode: UInt32) throws(Errno) {
        try nothingOrErrno { unsafe mkdir(path, mode) }
    }

    /// Whether ``link(_:as:)`` can work here at all: it needs Linux 6.10 or /proc.
    package static let canLinkUnnamed: Bool = {
        if KernelSupport.emptyPathLinks { return true }
        return unsafe access("/proc/self/fd", F_OK) == 0
    }()

    /// Gives the unnamed file `file` (O_TMPFILE) its name.
    ///
    /// C: `linkat`.
    ///
    /// By descriptor (AT_EMPTY_PATH) since Linux 6.10, which lets who opened the file do that; before, and
    /// where that is refused, from /proc/self/fd, as open(2) shows.
    package func link(_ file: borrowing FileDescriptor, as path: RelativePath) throws(Errno) {
        let number = file.rawValue
        try unsafe path.withCString { (path) throws(Errno) in
            if KernelSupport.emptyPathLinks {
                do throws(Errno) {
                    return try nothingOrErrno {
                        unsafe linkat(number, "", descriptor.rawValue, path, cplatform_AT_EMPTY_PATH)
                    }
                } catch {
                    // What the kernel says to who may not; also where the directory is gone, and then
                    // the second way says so again.
                    if error != .noEntry { throw error }
                }
            }
            try nothingOrErrno {
                unsafe linkat(
                    AT_FDCWD,
                    "/proc/self/fd/\(number)",
                    descriptor.rawValue,
                    path,
                    AT_SYMLINK_FOLLOW
                )
            }
        }
    }

    /// Moves a file, replacing what has the new name, in one step.
    ///
    /// C: `renameat`.
    package func rename(
        _ path: RelativePath,
        to target: borrowing Directory,
        _ newPath: RelativePath
    ) throws(Errno) {
        let number = target.descriptor.rawValue
        try unsafe path.withCString { (path) throws(Errno) in
            try unsafe newPath.withCString { (newPath) throws(Errno) in
                try nothingOrErrno { unsafe renameat(descriptor.rawValue, path, number, newPath) }
            }
        }
    }

    /// Removes a file's name.
    ///
    /// C: `unlinkat`.
    package func unlink(_ path: RelativePath) throws(Errno) {
        try unsafe path.withCString { (path) throws(Errno) in
            try nothingOrErrno { unsafe unlinkat(descriptor.rawValue, path, 0) }
        }
    }

    /// What stat tells of a file, of the link itself where it is one.
    ///
    /// C: `fstatat`.
    package func status(of path: RelativePath) throws(Errno) -> FileStatus {
        var status = stat()
        try unsafe path.withCString { (path) throws(Errno) in
            try nothingOrErrno { unsafe fstatat(descriptor.rawValue, path, &status, AT_SYMLINK_NOFOLLOW) }
        }
        return FileStatus(status)
    }

    /// Sets a file's time of last access; modification stays.
    ///
    /// Only its owner may. C: `utimensat`.
    package func setAccessTime(of path: RelativePath, to time: Timestamp) throws(Errno) {
        try setTimes(of: path, .access(time))
    }

    /// Sets both times of a file to the kernel's present.
    ///
    /// Who may write it may. C: `utimensat`.
    package func touch(_ path: RelativePath) throws(Errno) {
        try setTimes(of: path, .now)
    }

    private func setTimes(of path: RelativePath, _ times: FileTimes) throws(Errno) {
        try unsafe path.withCString { (path) throws(Errno) in
            try unsafe times.withTimes { (times) throws(Errno) in
                try nothingOrErrno {
                    unsafe utimensat(descriptor.rawValue, path, times, AT_SYMLINK_NOFOLLOW)
                }
            }
        }
    }

    /// Puts the directory's names on the medium.
    ///
    /// C: `fsync`.
    package func synchronize() throws(Errno) {
        try descriptor.synchronizeAll()
    }
}
