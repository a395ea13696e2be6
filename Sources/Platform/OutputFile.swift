// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file of the user's that is written whole or not at all.
package enum OutputFile {
    /// Writes `path` by way of a new file beside it, which takes its place when `body` has returned.
    ///
    /// What is no regular file (a device, a pipe) is written to directly.
    package static func write(
        _ path: String,
        _ body: (borrowing FileDescriptor) throws(Errno) -> Void
    ) throws(Errno) {
        if let special = try openSpecial(path) { return try body(special) }
        var generator = SystemRandomNumberGenerator()
        let draft = path + ".\(String(generator.next(), radix: 36)).part"
        // 0666 less the umask, as a shell's redirection makes it.
        let file = try FileDescriptor(opening: draft, [.readWrite, .create, .exclusive], mode: 0o666)
        do throws(Errno) {
            try body(file)
            try nothingOrErrno { unsafe rename(draft, path) }
        } catch {
            // The failure that counts is the one that led here.
            _ = unsafe Glibc.unlink(draft)
            throw error
        }
    }

    private static func openSpecial(_ path: String) throws(Errno) -> FileDescriptor? {
        var status = stat()
        do throws(Errno) {
            try nothingOrErrno { unsafe stat(path, &status) }
        } catch {
            if error == .noEntry { return nil }
            throw error
        }
        if status.st_mode & S_IFMT == S_IFREG { return nil }
        return try FileDescriptor(opening: path, .writeOnly)
    }
}
