// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// An open file, which is closed when the value is destroyed.
///
/// It is safe to use from several threads, as the kernel's calls are. It is close-on-exec unless ``setInherited()`` was
/// called.
package struct FileDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, which must not be used after this value is destroyed.
    package let rawValue: CInt

    /// Takes ownership of `rawValue`, which no other code may close.
    package init(owning rawValue: CInt) {
        self.rawValue = rawValue
    }

    deinit {
        Self.close(rawValue)
    }

    /// Closes the file now.
    ///
    /// C: `close`.
    ///
    /// The call is not repeated after EINTR, because Linux has released the number by then, close(2).
    package consuming func close() {
        let number = rawValue
        discard self
        Self.close(number)
    }

    /// Closes a number and ignores errors.
    ///
    /// An error reports a lost write, which fsync(2) has already reported to callers that requested durability. EBADF
    /// reports that the program has closed all its descriptors, as daemons do at startup.
    private static func close(_ number: CInt) {
        _ = SystemCall.close.isRefused
        _ = cplatform_close(number)
    }

    /// Opens a path from the user, following symbolic links.
    ///
    /// C: `open`.
    package init(opening path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) {
        self.init(
            owning: try unsafe path.withPath { (path) throws(Errno) in
                try systemCall(.open) { unsafe open(path, flags.rawValue | O_CLOEXEC, mode) }
            }
        )
    }

    /// Passes to `body` a descriptor that belongs to other code and stays open.
    ///
    /// That needs no new descriptor, so an error can be reported even if no descriptor is free.
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

    /// Returns a second descriptor for the same open file.
    ///
    /// C: `fcntl(F_DUPFD_CLOEXEC)`.
    package static func duplicate(_ rawValue: CInt) throws(Errno) -> FileDescriptor {
        FileDescriptor(owning: try systemCall(.open) { fcntl(rawValue, F_DUPFD_CLOEXEC, 0) })
    }

    /// Whether the file is open for reading.
    ///
    /// C: `fcntl(F_GETFL)`.
    package func isReadable() throws(Errno) -> Bool {
        try statusFlags() & O_ACCMODE != O_WRONLY
    }

    /// Clears close-on-exec: the file stays open in a program that replaces this one, and in programs started from now
    /// on.
    ///
    /// C: `fcntl(F_SETFD)`.
    package func setInherited() throws(Errno) {
        try systemCall(.descriptorFlags) { fcntl(rawValue, F_SETFD, 0) }
    }

    /// C: `fcntl(F_GETFL)`.
    func statusFlags() throws(Errno) -> CInt {
        try systemCall(.descriptorFlags) { fcntl(rawValue, F_GETFL) }
    }

    /// The file's read and write offset; negative for a file without one, for instance a pipe.
    ///
    /// C: `lseek`.
    var offset: Int64 { SystemCall.seek.isRefused ? -1 : Int64(lseek(rawValue, 0, SEEK_CUR)) }

    /// Moves the offset back to the start.
    ///
    /// C: `lseek`.
    package func rewind() throws(Errno) {
        try systemCall(.seek) { lseek(rawValue, 0, SEEK_SET) }
    }

    /// Returns the number of bytes from the offset to the end of a regular file; nil for anything else.
    ///
    /// C: `fstat`, `lseek`.
    package func lengthLeft() throws(Errno) -> Int64? {
        let status = try status()
        return status.kind == .regular ? max(0, status.size - offset) : nil
    }

    /// Flushes the file's data to the storage device.
    ///
    /// C: `fdatasync`.
    package func synchronize() throws(Errno) {
        try systemCall(.synchronize) { fdatasync(rawValue) }
    }

    /// Flushes the file and its attributes to the storage device; for a directory, the names in it.
    ///
    /// C: `fsync`.
    package func synchronizeAll() throws(Errno) {
        try systemCall(.synchronize) { fsync(rawValue) }
    }

    /// Sets the permission bits regardless of the umask.
    ///
    /// C: `fchmod`.
    package func setMode(_ mode: UInt32) throws(Errno) {
        try systemCall(.changeMode) { fchmod(rawValue, mode) }
    }

    /// Sets the owner and the group; nil leaves the owner unchanged.
    ///
    /// C: `fchown`.
    package func setOwner(_ owner: UInt32?, group: UInt32) throws(Errno) {
        try systemCall(.changeOwner) { fchown(rawValue, owner ?? uid_t.max, group) }
    }
}

/// The way a file is opened, open(2).
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

    /// Whether the call certainly creates the file.
    var makeFile: Bool {
        let exclusive = O_CREAT | O_EXCL
        return rawValue & cplatform_O_TMPFILE == cplatform_O_TMPFILE || rawValue & exclusive == exclusive
    }
}
