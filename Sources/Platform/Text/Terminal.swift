// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The process's standard streams.
package enum Terminal {
    package static let standardInput = STDIN_FILENO
    package static let standardOutput = STDOUT_FILENO
    package static let standardError = STDERR_FILENO

    /// Whether the descriptor is a terminal.
    ///
    /// C: `isatty`.
    package static func isInteractive(_ descriptor: Int32) -> Bool {
        isatty(descriptor) == 1
    }

    /// The size of a terminal in characters.
    package struct Size: Sendable, Equatable {
        package let rows: Int
        package let columns: Int
    }

    /// Returns the size of a terminal; nil if the descriptor is not a terminal or the size is unknown.
    ///
    /// C: `ioctl(TIOCGWINSZ)`.
    package static func size(_ descriptor: Int32) -> Size? {
        var size = winsize()
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else {
            return nil
        }
        return Size(rows: Int(size.ws_row), columns: Int(size.ws_col))
    }

    /// Returns the descriptor that a path denotes by its number: `/dev/fd/7`.
    package static func descriptor(named path: String) -> Int32? {
        for directory in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(directory) {
            return Int32(path.dropFirst(directory.count))
        }
        return nil
    }

    /// Whether the descriptor is open.
    ///
    /// C: `fcntl(F_GETFD)`.
    package static func isOpen(_ descriptor: Int32) -> Bool {
        !SystemCall.descriptorFlags.isRefused && fcntl(descriptor, F_GETFD) != -1
    }

    /// Writes the whole text to a descriptor, unchanged.
    ///
    /// C: `write`.
    package static func write(_ text: String, to descriptor: Int32) throws(Errno) {
        try FileDescriptor.borrowing(descriptor) { (file) throws(Errno) in
            try file.writeAll(text.utf8Span.span)
        }
    }
}
