// SPDX-License-Identifier: Apache-2.0

/// A file without a name for what is too much for memory: gone with the process, however that ends.
package final class ScratchFile: Sendable {
    /// Open for reading and writing.
    package let descriptor: FileDescriptor

    /// Makes one in a directory of the user's.
    ///
    /// Where there are no unnamed files (O_TMPFILE) it has a name for an instant.
    ///
    /// C: `open`, and where that is refused `open` and `unlinkat`.
    package init(in path: String) throws(Errno) {
        descriptor = try Self.open(in: Directory(opening: path))
    }

    private static func open(in directory: borrowing Directory) throws(Errno) -> FileDescriptor {
        do throws(Errno) {
            return try directory.open(".", [.readWrite, .temporary, .exclusive], mode: 0o600)
        } catch {
            switch error {
            case .notSupported, .isDirectory, .invalidArgument: break
            default: throw error
            }
        }
        let name = RelativePath(".diskcache-\(String(UInt64.random(in: 0 ... .max), radix: 36))")
        let file = try directory.open(name, [.readWrite, .create, .exclusive], mode: 0o600)
        try directory.unlink(name)
        return file
    }
}
