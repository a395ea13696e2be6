// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// An open file, closed when its owner goes.
///
/// Safe to use from several threads, as the kernel's calls are. Always close-on-exec.
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

    /// Errors report lost writes, which matter only to who asked for durability, and fsync has told those; and
    /// EBADF that the program has closed all its descriptors, as daemons do when they start, which must not end it.
    private static func close(_ number: CInt) {
        _ = Glibc.close(number)
    }

    /// Opens a path of the user's, following symbolic links.
    ///
    /// The corresponding C function is `open`.
    package init(opening path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) {
        let descriptor = try valueOrErrno {
            unsafe open(path, flags.rawValue | O_CLOEXEC, mode)
        }
        self.init(owning: descriptor)
    }

    /// Lends `body` a descriptor that belongs to somebody else and stays open.
    ///
    /// It takes none of its own: what is to be said gets out also where there is none left.
    package static func borrowing<Value>(
        _ rawValue: CInt,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        let file = FileDescriptor(owning: rawValue)
        do throws(Errno) {
            let value = try body(file)
            file.forget()
            return value
        } catch {
            file.forget()
            throw error
        }
    }

    private consuming func forget() {
        discard self
    }

    /// A second descriptor for the same open file.
    ///
    /// The corresponding C function is `fcntl(F_DUPFD_CLOEXEC)`.
    package static func duplicate(_ rawValue: CInt) throws(Errno) -> FileDescriptor {
        FileDescriptor(owning: try valueOrErrno { fcntl(rawValue, F_DUPFD_CLOEXEC, 0) })
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
    package static let noAccessTime = OpenFlags(rawValue: cplatform_O_NOATIME)
    package static let temporary = OpenFlags(rawValue: cplatform_O_TMPFILE)
}
