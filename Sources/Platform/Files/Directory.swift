// SPDX-License-Identifier: Apache-2.0

import CPlatform
package import FoundationEssentials
import Glibc

/// An open directory, below which everything is reached by the kernel's *at calls.
///
/// No call follows a symbolic link at the end of a path. No call that opens or changes a file follows one inside the
/// path: openat2(2) can be told so, and the other calls get the directory that the name is in. Only ``status(of:)`` and
/// ``attribute(_:of:)`` may look at another file, and the reader of a record checks its key. A renamed directory stays
/// the same one here.
package struct Directory: ~Copyable, Sendable {
    package let descriptor: FileDescriptor
    /// Whose files may be below it; nil: any user's.
    let ownership: Ownership?

    /// Takes over a descriptor that was opened with O_DIRECTORY, or O_PATH and that.
    package init(owning descriptor: consuming FileDescriptor, _ ownership: Ownership? = nil) {
        self.descriptor = descriptor
        self.ownership = ownership
    }

    /// Opens a directory of the user's, following symbolic links.
    ///
    /// C: `open`.
    package init(opening path: String) throws(Errno) {
        self.init(owning: try FileDescriptor(opening: path, [.readOnly, .directory]))
    }

    /// The same directory, below which files belong to those whom `ownership` names.
    package consuming func owned(by ownership: Ownership) -> Directory {
        Directory(owning: descriptor, ownership)
    }

    /// Makes a system call with this directory's number and `path`.
    @safe
    @discardableResult
    @inline(__always)
    func call<Value: FixedWidthInteger & SignedInteger>(
        _ name: SystemCall,
        _ path: RelativePath,
        _ body: (CInt, UnsafePointer<CChar>) -> Value
    ) throws(Errno) -> Value {
        try unsafe path.withCString { (path) throws(Errno) in
            try systemCall(name) { unsafe body(descriptor.rawValue, path) }
        }
    }

    /// Makes a system call that changes the name at `path`, with the directory that it is in and the name alone.
    ///
    /// Calls such as linkat(2) and unlinkat(2) follow a symbolic link in the place of a directory on the way. So a path
    /// with a directory costs two calls more: `openat2`, `close`.
    @safe
    @discardableResult
    func change<Value: FixedWidthInteger & SignedInteger>(
        _ name: SystemCall,
        _ path: RelativePath,
        _ body: (CInt, UnsafePointer<CChar>) -> Value
    ) throws(Errno) -> Value {
        guard let (directory, rest) = path.firstDirectory else { return try call(name, path, body) }
        return try openPlace(directory).change(name, rest, body)
    }

    /// Opens a directory below this one.
    ///
    /// C: `openat2`.
    ///
    /// - Throws: ``Errno/notDirectory`` for anything else, ``Errno/tooManyLinks`` or that for a symbolic link.
    package func openDirectory(_ path: RelativePath) throws(Errno) -> Directory {
        try openDirectory(path, O_RDONLY)
    }

    /// The same for calls on names in it: this needs no permission to list it.
    private func openPlace(_ path: RelativePath) throws(Errno) -> Directory {
        try openDirectory(path, cplatform_O_PATH)
    }

    private func openDirectory(_ path: RelativePath, _ access: CInt) throws(Errno) -> Directory {
        let flags = access | O_DIRECTORY | O_CLOEXEC
        let number = try call(.open, path) { unsafe cplatform_openat_nofollow($0, $1, flags, 0) }
        return Directory(owning: FileDescriptor(owning: number), ownership)
    }

    /// Opens or creates a regular file below this one.
    ///
    /// A user who may write to the directory can have put anything in a file's place. Whatever it is, this call does not wait for
    /// it, and does not return it.
    ///
    /// C: `openat2`, and `fstat` unless this call makes the file for sure (O_EXCL, O_TMPFILE). For root in another
    /// user's directory `fchown` of a file that this call makes.
    ///
    /// - Throws: ``Errno/tooManyLinks`` for a symbolic link, ``Errno/isDirectory`` for a directory,
    ///   ``Errno/noDeviceOrAddress`` for a pipe, a socket or a device, and for another user's file where ``Ownership``
    ///   excludes it.
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

    /// Opens a file, or makes it and knows that it did.
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
                // Deleted meanwhile.
                guard error == .noEntry else { throw error }
            }
        }
    }

    private func check(_ file: borrowing FileDescriptor) throws(Errno) {
        let status = try file.status()
        try status.checkRegular()
        if let ownership, !ownership.accepts(status) { throw .noDeviceOrAddress }
    }

    /// Opens whatever is there, without waiting for it.
    @inline(__always)
    func openAny(_ path: RelativePath, _ flags: OpenFlags, mode: UInt32) throws(Errno)
        -> FileDescriptor
    {
        // A terminal must not become the controlling one of this process, and the call must not wait for the other end of a pipe.
        let flags = flags.rawValue | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        let number = try call(.open, path) { unsafe cplatform_openat_nofollow($0, $1, flags, mode) }
        return FileDescriptor(owning: number)
    }

    /// The whole file as `Data`; nil if it does not have exactly `count` bytes, or if `isValid` rejects them.
    ///
    /// C: `openat2`, `read`, `close`; from 1 MiB on `fstat` after the first, as a damaged record may promise any
    /// length. Two allocations. Never waits; anything but a regular file is an error as in ``open(_:_:mode:)``.
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
            // Looked at before it becomes `Data`, each access to which counts references.
            return unsafe isValid(Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<count])))
        }
    }

    /// Reads a regular file from its start, up to the end of `buffer`; the number of bytes.
    ///
    /// Stops when all but the last byte of the buffer are there: a caller that expects one less than it takes needs no
    /// further call to know that the file ends, and sees one byte more if it does not.
    @unsafe
    private func readFile(
        _ path: RelativePath,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(Errno) -> Int {
        let file = try openAny(path, .readOnly, mode: 0)
        var filled = 0
        do throws(Errno) {
            while true {
                // A regular file gives less than asked for at its end only, read(2).
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                let count = try unsafe file.readSome(into: rest)
                filled += count
                if filled == buffer.count - 1 { return filled }
                if count == 0 || filled == buffer.count { break }
            }
        } catch {
            try file.status().checkRegular()
            throw error
        }
        // Only if something is wrong: if the number of bytes is right, their checksum decides, whatever the kind of the file.
        try file.status().checkRegular()
        return filled
    }

    /// Creates a directory, unless there is one: then false.
    ///
    /// C: `mkdirat`; for root in another user's directory `openat2`, `fchown` and `close` besides.
    @discardableResult
    package func makeDirectoryIfMissing(_ path: RelativePath, mode: UInt32) throws(Errno) -> Bool {
        let isNew = try unlessExists { () throws(Errno) in
            try change(.makeDirectory, path) { unsafe mkdirat($0, $1, mode) }
        }
        if isNew, let ownership, ownership.givesFilesAway {
            ownership.give(try openDirectory(path).descriptor)
        }
        return isNew
    }

    /// Creates a directory at a path of the user's.
    ///
    /// C: `mkdir`.
    package static func make(_ path: String, mode: UInt32) throws(Errno) {
        _ = try unsafe path.withPath { (path) throws(Errno) in
            try systemCall(.makeDirectory) { unsafe mkdir(path, mode) }
        }
    }

    /// Whether ``link(_:as:)`` can work here at all: it needs Linux 6.10 or /proc.
    package static let canLinkUnnamed =
        KernelSupport.emptyPathLinks || CurrentProcess.isThere("/proc/self/fd")

    /// Gives the unnamed file `file` (O_TMPFILE) its name.
    ///
    /// C: `linkat`.
    ///
    /// By descriptor (AT_EMPTY_PATH) since Linux 6.10, which allows it to the process that opened the file; before, and
    /// if that is refused, from /proc/self/fd, as open(2) shows.
    package func link(_ file: borrowing FileDescriptor, as path: RelativePath) throws(Errno) {
        let number = file.rawValue
        if KernelSupport.emptyPathLinks {
            do throws(Errno) {
                try change(.link, path) { unsafe linkat(number, "", $0, $1, cplatform_AT_EMPTY_PATH) }
                return
            } catch {
                // What the kernel says to who may not; also where the directory is gone, and then
                // the second way says so again.
                if error != .noEntry { throw error }
            }
        }
        let link = "/proc/self/fd/\(number)"
        try change(.link, path) { unsafe linkat(AT_FDCWD, link, $0, $1, AT_SYMLINK_FOLLOW) }
    }

    /// Gives a file in this directory, not below, a second name in it.
    ///
    /// C: `linkat`.
    package func link(_ path: RelativePath, as newPath: RelativePath) throws(Errno) {
        let number = descriptor.rawValue
        _ = try unsafe path.withCString { (path) throws(Errno) in
            try call(.link, newPath) { unsafe linkat(number, path, $0, $1, 0) }
        }
    }

    /// Moves a file, replacing a file that has the new name, in one step.
    ///
    /// C: `renameat`.
    package func rename(
        _ path: RelativePath,
        to target: borrowing Directory,
        _ newPath: RelativePath
    ) throws(Errno) {
        if let (directory, rest) = path.firstDirectory {
            return try openPlace(directory).rename(rest, to: target, newPath)
        }
        let number = descriptor.rawValue
        _ = try unsafe path.withCString { (path) throws(Errno) in
            try target.change(.rename, newPath) { unsafe renameat(number, path, $0, $1) }
        }
    }

    /// Removes a file's name.
    ///
    /// C: `unlinkat`.
    package func unlink(_ path: RelativePath) throws(Errno) {
        try change(.unlink, path) { unsafe unlinkat($0, $1, 0) }
    }

    /// The status of a file; of a symbolic link itself.
    ///
    /// C: `fstatat`.
    package func status(of path: RelativePath) throws(Errno) -> FileStatus {
        try unsafe path.withCString { (path) throws(Errno) in
            try FileStatus { unsafe fstatat(descriptor.rawValue, path, &$0, AT_SYMLINK_NOFOLLOW) }
        }
    }

    /// The same; nil if there is no file.
    package func presentStatus(of path: RelativePath) throws(Errno) -> FileStatus? {
        try ifExists { () throws(Errno) in try status(of: path) }
    }

    /// Sets a file's time of last access; modification stays.
    ///
    /// Only its owner may. C: `utimensat`.
    package func setAccessTime(of path: RelativePath, to time: Timestamp) throws(Errno) {
        try unsafe time.withAccessTimes { (times) throws(Errno) in
            try change(.setTimes, path) { unsafe utimensat($0, $1, times, AT_SYMLINK_NOFOLLOW) }
        }
    }

    /// Sets both times of a file to the kernel's present.
    ///
    /// Who may write it may. C: `utimensat`.
    package func touch(_ path: RelativePath) throws(Errno) {
        try change(.setTimes, path) { unsafe utimensat($0, $1, nil, AT_SYMLINK_NOFOLLOW) }
    }
}

extension FileStatus {
    /// - Throws: ``Errno/isDirectory`` for a directory, ``Errno/noDeviceOrAddress``, what open says of a socket, for
    ///   anything else but a regular file.
    fileprivate func checkRegular() throws(Errno) {
        switch kind {
        case .regular: return
        case .directory: throw .isDirectory
        case .symbolicLink, .other: throw .noDeviceOrAddress
        }
    }
}
