// SPDX-License-Identifier: Apache-2.0

extension Directory {
    /// A new file in this directory that has no name yet; nil where the file system lacks such files.
    ///
    /// C: `openat2(O_TMPFILE)`.
    package func openUnnamed(_ flags: OpenFlags = [], mode: UInt32) throws(Errno) -> FileDescriptor? {
        do throws(Errno) {
            return try open(".", flags.union([.readWrite, .temporary]), mode: mode)
        } catch {
            switch error {
            case .notSupported, .isDirectory, .invalidArgument: return nil
            default: throw error
            }
        }
    }
}

extension FileDescriptor {
    /// A new file in the directory at `path`, a path of the user's, that has no name, or none any more: gone with the
    /// process, however that ends.
    ///
    /// C: `open`, `openat2(O_TMPFILE)`; where the file system lacks that `openat2`, `unlinkat`: then it has a name for
    /// an instant.
    package static func unnamed(in path: String) throws(Errno) -> FileDescriptor {
        let directory = try Directory(opening: path)
        if let file = try directory.openUnnamed(.exclusive, mode: 0o600) { return file }
        let name = RelativePath(".diskcache-\(String(UInt64.random(in: 0 ... .max), radix: 36))")
        let file = try directory.open(name, [.readWrite, .create, .exclusive], mode: 0o600)
        try directory.unlink(name)
        return file
    }
}
