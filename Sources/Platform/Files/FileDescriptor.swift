// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// An open file, closed when its owner goes.
///
/// Safe to use from several threads, as the kernel's calls are. Close-on-exec, but for ``setInherited()``.
package struct FileDescriptor: ~Copyable, Sendable {
    /// The number; it must not outlive this value.
    package let rawValue: CInt

    /// Takes over `rawValue`, which nobody else may close.
    package init(owning rawValue: CInt) {
        self.rawValue = rawValue
    }

    deinit {
        Self.close(rawValue)
    }

    /// Closes it now.
    ///
    /// The corresponding C function is `close`.
    ///
    /// Never called again after EINTR: Linux has let go of the number then, close(2).
    package consuming func close() {
        let number = rawValue
        discard self
        Self.close(number)
    }

    /// Errors are of no use: they report lost writes, of which fsync has told those who asked for durability, or (EBADF)
    /// that the program has closed all its descriptors, as daemons do when they start.
    private static func close(_ number: CInt) {
        _ = SystemCall.close.isRefused
        _ = cplatform_close(number)
    }

    /// Opens a path of the user's, following symbolic links.
    ///
    /// The corresponding C function is `open`.
    package init(opening path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) {
        self.init(
            owning: try unsafe path.withPath { (path) throws(Errno) in
                try systemCall(.open) { unsafe open(path, flags.rawValue | O_CLOEXEC, mode) }
            }
        )
    }

    /// Lends `body` a descriptor that belongs to somebody else and stays open.
    ///
    /// Needs no new descriptor, so that an error can be reported also when there is none left.
    package static func borrowing<Value>(
        _ rawValue: CInt,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        let file = FileDescriptor(owning: rawValue)
        let result = Result { () throws(Errno) in try body(file) }
        file.forget()
        return try result.get()
    }

    private consuming func forget() {
        discard self
    }

    /// A second descriptor for the same open file.
    ///
    /// The corresponding C function is `fcntl(F_DUPFD_CLOEXEC)`.
    package static func duplicate(_ rawValue: CInt) throws(Errno) -> FileDescriptor {
        FileDescriptor(owning: try systemCall(.open) { fcntl(rawValue, F_DUPFD_CLOEXEC, 0) })
    }

    /// Whether it is open for reading.
    ///
    /// C: `fcntl(F_GETFL)`.
    package func isReadable() throws(Errno) -> Bool {
        try statusFlags() & O_ACCMODE != O_WRONLY
    }

    /// Leaves it open in the program that takes the place of this one, and in those started from now on.
    ///
    /// C: `fcntl(F_SETFD)`.
    package func setInherited() throws(Errno) {
        try systemCall(.descriptorFlags) { fcntl(rawValue, F_SETFD, 0) }
    }

    /// C: `fcntl(F_GETFL)`.
    func statusFlags() throws(Errno) -> CInt {
        try systemCall(.descriptorFlags) { fcntl(rawValue, F_GETFL) }
    }

    /// Where the next byte is read or written; negative for what has no such place, a pipe for instance.
    ///
    /// C: `lseek`.
    var offset: Int64 { SystemCall.seek.isRefused ? -1 : Int64(lseek(rawValue, 0, SEEK_CUR)) }

    /// Moves the offset back to the start.
    ///
    /// C: `lseek`.
    package func rewind() throws(Errno) {
        try systemCall(.seek) { lseek(rawValue, 0, SEEK_SET) }
    }

    /// Bytes from the offset to the end of a regular file; nil for anything else.
    ///
    /// C: `fstat`, `lseek`.
    package func lengthLeft() throws(Errno) -> Int64? {
        let status = try status()
        return status.kind == .regular ? max(0, status.size - offset) : nil
    }

    /// Puts the file's bytes on the medium.
    ///
    /// C: `fdatasync`.
    package func synchronize() throws(Errno) {
        try systemCall(.synchronize) { fdatasync(rawValue) }
    }

    /// Puts the file and its attributes on the medium; of a directory the names.
    ///
    /// C: `fsync`.
    package func synchronizeAll() throws(Errno) {
        try systemCall(.synchronize) { fsync(rawValue) }
    }

    /// Sets the permission bits whatever the umask is.
    ///
    /// C: `fchmod`.
    package func setMode(_ mode: UInt32) throws(Errno) {
        try systemCall(.changeMode) { fchmod(rawValue, mode) }
    }

    /// Sets the owner and the group; nil leaves the owner as it is.
    ///
    /// C: `fchown`.
    package func setOwner(_ owner: UInt32?, group: UInt32) throws(Errno) {
        try systemCall(.changeOwner) { fchown(rawValue, owner ?? uid_t.max, group) }
    }
}

/// How a file is opened, open(2).
///
/// O_CLOEXEC is always added.
package struct OpenFlags: OptionSet, Sendable {
    package let rawValue: CInt

    package init(rawValue: CInt) {
        self.rawValue = rawValue
    }

    package static let readOnly = OpenFlags(rawValue: O_RDONLY)
    package static let writeOnly = OpenFlags(rawValue: O_WRONLY)
    package static let readWrite = OpenFlags(rawValue: O_RDWR)
    package static let create = OpenFlags(rawValue: O_CREAT)
    package static let exclusive = OpenFlags(rawValue: O_EXCL)
    package static let append = OpenFlags(rawValue: O_APPEND)
    package static let truncate = OpenFlags(rawValue: O_TRUNC)
    package static let directory = OpenFlags(rawValue: O_DIRECTORY)
    package static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
    package static let noAccessTime = OpenFlags(rawValue: cplatform_O_NOATIME)
    package static let temporary = OpenFlags(rawValue: cplatform_O_TMPFILE)

    /// Whether the file is one that this very call makes.
    var makeFile: Bool {
        let exclusive = O_CREAT | O_EXCL
        return rawValue & cplatform_O_TMPFILE == cplatform_O_TMPFILE || rawValue & exclusive == exclusive
    }
}
