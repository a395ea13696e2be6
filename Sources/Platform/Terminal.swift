// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The process's standard streams and environment.
package enum Terminal {
    package static let standardInput = STDIN_FILENO
    package static let standardOutput = STDOUT_FILENO
    package static let standardError = STDERR_FILENO

    /// Whether a person looks at it.
    ///
    /// C: `isatty`.
    package static func isInteractive(_ descriptor: Int32) -> Bool {
        isatty(descriptor) == 1
    }

    /// How much a terminal shows at a time.
    package struct Size: Sendable, Equatable {
        package let rows: Int
        package let columns: Int

        package init(rows: Int, columns: Int) {
            self.rows = rows
            self.columns = columns
        }
    }

    /// nil where it is no terminal, or one that does not know.
    ///
    /// C: `ioctl(TIOCGWINSZ)`.
    package static func size(_ descriptor: Int32) -> Size? {
        var (rows, columns): (CInt, CInt) = (0, 0)
        guard unsafe cplatform_terminal_size(descriptor, &rows, &columns) == 0, rows > 0, columns > 0 else {
            return nil
        }
        return Size(rows: Int(rows), columns: Int(columns))
    }

    /// The descriptor that a path names by its number: `/dev/fd/7`.
    package static func descriptor(named path: String) -> Int32? {
        for directory in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(directory) {
            return Int32(path.dropFirst(directory.count))
        }
        return nil
    }

    /// C: `fcntl(F_GETFD)`.
    package static func isOpen(_ descriptor: Int32) -> Bool {
        fcntl(descriptor, F_GETFD) != -1
    }

    /// Writes text to a descriptor as it is, whole.
    ///
    /// C: `write`.
    package static func write(_ text: String, to descriptor: Int32) throws(Errno) {
        try FileDescriptor.borrowing(descriptor) { (file) throws(Errno) in
            try file.writeAll(text.utf8Span.span)
        }
    }
}

/// Bytes that should be text and are not valid UTF-8.
package struct InvalidText: Error, Equatable {}

/// Facts about this process.
package enum CurrentProcess {
    /// The value of an environment variable, nil where it is not set.
    ///
    /// C: `getenv`.
    ///
    /// - Throws: where it is not valid UTF-8, as its repaired form may name another file.
    package static func environment(_ name: String) throws(InvalidText) -> String? {
        guard let bytes = unsafe getenv(name) else { return nil }
        guard let text = unsafe String(validatingCString: bytes) else { throw InvalidText() }
        return text
    }

    /// The arguments but the program's name: bytes, which need not be UTF-8.
    package static var arguments: [[UInt8]] {
        var words: [[UInt8]] = []
        while let word = unsafe cplatform_argument(CInt(words.count + 1)) {
            words.append(unsafe [UInt8](UnsafeRawBufferPointer(start: word, count: strlen(word))))
        }
        return words
    }

    /// Opens what is missing of the three standard descriptors, so that no file of the cache can get
    /// their numbers and be taken for the output.
    ///
    /// Each is opened the wrong way round, so that using it still fails (EBADF), as if it were closed.
    package static func occupyStandardDescriptors() {
        for (descriptor, flags) in [
            (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
        ]
        where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest free number is this one. Where /dev/null can't be opened there is nothing to do.
            _ = unsafe open("/dev/null", flags)
        }
    }

    /// Ends the process.
    ///
    /// C: `exit`.
    package static func exit(_ status: Int32) -> Never {
        Glibc.exit(status)
    }

    /// C: `getpid`.
    package static var identifier: Int32 { getpid() }
    /// The namespace of processes in which ``identifier`` counts, by its inode; 0 where /proc does not tell.
    ///
    /// C: `stat`, once.
    package static let namespace: UInt32 = {
        do throws(Errno) {
            return UInt32(truncatingIfNeeded: try FileStatus.of("/proc/self/ns/pid").identity.inode)
        } catch {
            return 0
        }
    }()
    /// C: `geteuid`.
    package static var effectiveUser: UInt32 { geteuid() }
}

extension FileDescriptor {
    /// Whether it is open for reading.
    ///
    /// C: `fcntl(F_GETFL)`.
    package func isReadable() throws(Errno) -> Bool {
        try valueOrErrno { fcntl(rawValue, F_GETFL) } & O_ACCMODE != O_WRONLY
    }
}
