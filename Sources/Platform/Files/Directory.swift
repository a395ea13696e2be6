// SPDX-License-Identifier: Apache-2.0

import CPlatform
package import FoundationEssentials
import Glibc

/// An open directory; files below it are accessed with the kernel's *at calls.
///
/// No call follows a symbolic link at the end of a path. No call that opens or changes a file follows one inside the
/// path: openat2(2) gets a flag that forbids it, and the other calls get a descriptor of the directory that contains the
/// name. Only ``status(of:)`` and ``attribute(_:of:)`` may follow a link inside the path and so access another file;
/// whoever reads a record checks its key. After a rename the value still denotes the same directory.
package struct Directory: ~Copyable, Sendable {
    package let descriptor: FileDescriptor
    /// The users whose files may be below it; nil for any user.
    let ownership: Ownership?

    /// Takes ownership of a descriptor that was opened with O_DIRECTORY, possibly together with O_PATH.
    package init(owning descriptor: consuming FileDescriptor, _ ownership: Ownership? = nil) {
        self.descriptor = descriptor
        self.ownership = ownership
    }

    /// Opens the directory at a path from the user, following symbolic links.
    ///
    /// C: `open`.
    package init(opening path: String) throws(Errno) {
        self.init(owning: try FileDescriptor(opening: path, [.readOnly, .directory]))
    }

    /// Returns the same directory with `ownership` applied to the files below it.
    package consuming func owned(by ownership: Ownership) -> Directory {
        Directory(owning: descriptor, ownership)
    }

    /// Opens a directory below this one.
    ///
    /// C: `openat2`.
    ///
    /// - Throws: ``Errno/notDirectory`` for any other kind of file; for a symbolic link either that or
    ///   ``Errno/tooManyLinks``.
    package func openDirectory(_ path: RelativePath) throws(Errno) -> Directory {
        try openDirectory(path, O_RDONLY)
    }

    /// Opens a directory for calls on names in it, without requiring permission to list it.
    ///
    /// Calls such as linkat(2) and unlinkat(2) follow a symbolic link that replaces an intermediate directory. So a change in
    /// a subdirectory first opens the subdirectory, which takes two more calls: `openat2`, `close`.
    private func openPlace(_ path: RelativePath) throws(Errno) -> Directory {
        try openDirectory(path, cplatform_O_PATH)
    }

    private func openDirectory(_ path: RelativePath, _ access: CInt) throws(Errno) -> Directory {
        let flags = access | O_DIRECTORY | O_CLOEXEC
        let number = try systemCall(.open) {
            cplatform_openat_nofollow(descriptor.rawValue, path.cPath, flags, 0)
        }
        return Directory(owning: FileDescriptor(owning: number), ownership)
    }

    /// Opens or creates a regular file below this one.
    ///
    /// A user with write access to the directory may have replaced the file by one of another kind, such as a pipe. This
    /// call neither waits for such a file nor returns it.
    ///
    /// C: `openat2`, and `fstat` unless this call certainly creates the file (O_EXCL, O_TMPFILE). For root in another user's
    /// directory also `fchown` of a file that this call creates.
    ///
    /// - Throws: ``Errno/tooManyLinks`` for a symbolic link, ``Errno/isDirectory`` for a directory,
    ///   ``Errno/noDeviceOrAddress`` for a pipe, a socket or a device, and for another user's file if ``Ownership`` excludes
    ///   it.
    package func open(
        _ path: RelativePath,
        _ flags: OpenFlags,
        mode: UInt32 = 0
    ) throws(Errno) -> FileDescriptor {
        if let ownership, ownership.givesFilesAway, flags.contains(.create), !flags.makeFile {
            return try openOrMake(path, flags, mode: mode)
        }
        let file = try openAny(path, flags, mode: mode)
        if flags.makeFile {
            ownership?.give(file)
        } else {
            try check(file)
        }
        return file
    }

    /// Opens or creates a file; only a file that this call creates gets a new owner.
    private func openOrMake(_ path: RelativePath, _ flags: OpenFlags, mode: UInt32) throws(Errno)
        -> FileDescriptor
    {
        while true {
            do throws(Errno) {
                return try open(path, flags.union(.exclusive), mode: mode)
            } catch {
                guard error == .exists else { throw error }
            }
            do throws(Errno) {
                return try open(path, flags.subtracting(.create))
            } catch {
                // The file was deleted between the two attempts.
                guard error == .noEntry else { throw error }
            }
        }
    }

    private func check(_ file: borrowing FileDescriptor) throws(Errno) {
        let status = try file.status()
        try status.checkRegular()
        if let ownership, !ownership.accepts(status) { throw .noDeviceOrAddress }
    }

    /// Opens a file of any kind, without waiting for it.
    @inline(__always)
    func openAny(_ path: RelativePath, _ flags: OpenFlags, mode: UInt32) throws(Errno)
        -> FileDescriptor
    {
        // A terminal must not become this process's controlling terminal, and the call must not wait for the other end of a
        // pipe.
        let flags = flags.rawValue | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        let number = try systemCall(.open) {
            cplatform_openat_nofollow(descriptor.rawValue, path.cPath, flags, mode)
        }
        return FileDescriptor(owning: number)
    }

    /// Returns the whole file as `Data`; nil if it does not have exactly `count` bytes, or if `isValid` rejects them.
    ///
    /// C: `openat2`, `read`, `close`; from 1 MiB on also `fstat`, twice, before memory is allocated, because a damaged
    /// record may state any length. Two allocations. A file that is not regular is an error as in ``open(_:_:mode:)``;
    /// but for less than 1 MiB the kind is checked only if the file does not return exactly `count` bytes.
    package func contents(
        of path: RelativePath,
        count: Int,
        isValid: (Span<UInt8>) -> Bool
    ) throws(Errno) -> Data? {
        if count >= 1 << 20 {
            guard let data = try open(path, .readOnly).readExactly(count), isValid(data.span) else {
                return nil
            }
            return data
        }
        return try unsafe Data.filled(count) { (buffer) throws(Errno) in
            guard try unsafe readFile(path, into: buffer) == count else { return false }
            // Validated before the conversion to `Data`, each access to which counts references.
            return unsafe isValid(Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<count])))
        }
    }

    /// Reads a file from its start until `buffer` is full or the file ends, and returns the number of bytes read.
    ///
    /// The function also stops when only the last byte of the buffer is unfilled. So a caller whose buffer is one byte
    /// larger than the expected file needs no second `read` to detect the end of the file, and gets one byte more if the
    /// file is longer.
    @unsafe
    private func readFile(
        _ path: RelativePath,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(Errno) -> Int {
        let file = try openAny(path, .readOnly, mode: 0)
        var filled = 0
        do throws(Errno) {
            while true {
                // A regular file returns less than requested only at its end, read(2).
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                // Never waits: a pipe whose writer sends nothing is an error.
                let count = try unsafe file.readOnce(into: rest)
                filled += count
                if filled == buffer.count - 1 { return filled }
                if count == 0 || filled == buffer.count { break }
            }
        } catch {
            try file.status().checkRegular()
            throw error
        }
        // The kind is checked only if the number of bytes is wrong. If it is right, the checksum of the bytes decides,
        // whatever the kind of the file.
        try file.status().checkRegular()
        return filled
    }

    /// Creates a directory; returns false if it exists already.
    ///
    /// C: `mkdirat`; for root in another user's directory also `openat2`, `fchown` and `close`.
    @discardableResult
    package func makeDirectoryIfMissing(_ path: RelativePath, mode: UInt32) throws(Errno) -> Bool {
        if let (directory, name) = path.firstDirectory {
            return try openPlace(directory).makeDirectoryIfMissing(name, mode: mode)
        }
        do throws(Errno) {
            try systemCall(.makeDirectory) { cplatform_mkdirat(descriptor.rawValue, path.cPath, mode) }
        } catch {
            if error == .exists { return false }
            throw error
        }
        if let ownership, ownership.givesFilesAway { ownership.give(try openDirectory(path).descriptor) }
        return true
    }

    /// Creates a directory at a path from the user.
    ///
    /// C: `mkdir`.
    package static func make(_ path: String, mode: UInt32) throws(Errno) {
        _ = try unsafe path.withPath { (path) throws(Errno) in
            try systemCall(.makeDirectory) { unsafe mkdir(path, mode) }
        }
    }

    /// Whether ``link(_:as:)`` can work on this system: it needs Linux 6.10 or /proc.
    package static let canLinkUnnamed =
        KernelSupport.emptyPathLinks || CurrentProcess.isThere("/proc/self/fd")

    /// Links the unnamed file `file` (O_TMPFILE) at a path.
    ///
    /// C: `linkat`.
    ///
    /// Since Linux 6.10, the process that opened the file may link it by descriptor (AT_EMPTY_PATH). On older kernels,
    /// and if the kernel refuses that, the function links the file from /proc/self/fd, as described in open(2).
    package func link(_ file: borrowing FileDescriptor, as path: RelativePath) throws(Errno) {
        if let (directory, name) = path.firstDirectory {
            return try openPlace(directory).link(file, as: name)
        }
        let (number, target) = (file.rawValue, descriptor.rawValue)
        if KernelSupport.emptyPathLinks {
            do throws(Errno) {
                try systemCall(.link) { cplatform_link_descriptor(number, target, path.cPath) }
                return
            } catch {
                // The kernel reports ENOENT if the process lacks permission, and also if the directory was deleted. In
                // the latter case the call below fails with the same error.
                if error != .noEntry { throw error }
            }
        }
        let link = "/proc/self/fd/\(number)"
        try systemCall(.link) { unsafe cplatform_link_target(link, target, path.cPath) }
    }

    /// Gives a file a second name; both names are in this directory, not below it.
    ///
    /// C: `linkat`.
    package func link(_ path: RelativePath, as newPath: RelativePath) throws(Errno) {
        let number = descriptor.rawValue
        try systemCall(.link) { cplatform_linkat(number, path.cPath, number, newPath.cPath) }
    }

    /// Moves a file atomically, replacing any file at the new path.
    ///
    /// C: `renameat`.
    package func rename(
        _ path: RelativePath,
        to target: borrowing Directory,
        _ newPath: RelativePath
    ) throws(Errno) {
        if let (directory, name) = path.firstDirectory {
            return try openPlace(directory).rename(name, to: target, newPath)
        }
        if let (directory, name) = newPath.firstDirectory {
            return try rename(path, to: target.openPlace(directory), name)
        }
        let (number, newNumber) = (descriptor.rawValue, target.descriptor.rawValue)
        try systemCall(.rename) { cplatform_renameat(number, path.cPath, newNumber, newPath.cPath) }
    }

    /// Removes a file's name.
    ///
    /// C: `unlinkat`.
    package func unlink(_ path: RelativePath) throws(Errno) {
        if let (directory, name) = path.firstDirectory { return try openPlace(directory).unlink(name) }
        try systemCall(.unlink) { cplatform_unlinkat(descriptor.rawValue, path.cPath) }
    }

    /// Returns the status of a file, without following a symbolic link.
    ///
    /// C: `fstatat`.
    package func status(of path: RelativePath) throws(Errno) -> FileStatus {
        try FileStatus { unsafe cplatform_fstatat(descriptor.rawValue, path.cPath, &$0) }
    }

    /// Returns the status of a file, or nil if it does not exist.
    package func presentStatus(of path: RelativePath) throws(Errno) -> FileStatus? {
        try ifExists { () throws(Errno) in try status(of: path) }
    }

    /// Sets a file's time of last access and leaves its modification time unchanged.
    ///
    /// Only the file's owner may do that.
    ///
    /// C: `utimensat`.
    package func setAccessTime(of path: RelativePath, to time: Timestamp) throws(Errno) {
        if let (directory, name) = path.firstDirectory {
            return try openPlace(directory).setAccessTime(of: name, to: time)
        }
        let time = time.fileTime
        try systemCall(.setTimes) {
            cplatform_set_access_time(descriptor.rawValue, path.cPath, Int64(time.tv_sec), time.tv_nsec)
        }
    }

    /// Sets both times of a file to the kernel's current time.
    ///
    /// Any user with write access may do that.
    ///
    /// C: `utimensat`.
    package func touch(_ path: RelativePath) throws(Errno) {
        if let (directory, name) = path.firstDirectory { return try openPlace(directory).touch(name) }
        try systemCall(.setTimes) { cplatform_touch(descriptor.rawValue, path.cPath) }
    }
}

extension FileStatus {
    /// Checks that the file is a regular file.
    ///
    /// - Throws: ``Errno/isDirectory`` for a directory; for any other kind ``Errno/noDeviceOrAddress``, which open(2)
    ///   reports for a socket.
    fileprivate func checkRegular() throws(Errno) {
        switch kind {
        case .regular: return
        case .directory: throw .isDirectory
        case .symbolicLink, .other: throw .noDeviceOrAddress
        }
    }
}
