// SPDX-License-Identifier: Apache-2.0

extension Directory {
    /// Creates a file in this directory that has no name yet; returns nil if the file system does not support that.
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
    /// Creates a file without a name in the directory at `path`, a path from the user.
    ///
    /// The file disappears when the process ends, however it ends.
    ///
    /// C: `open`, `openat2(O_TMPFILE)`; if the file system lacks O_TMPFILE, also `openat2` and `unlinkat`, so that the
    /// file has a name for an instant.
    package static func unnamed(in path: String) throws(Errno) -> FileDescriptor {
        let directory = try Directory(opening: path)
        if let file = try directory.openUnnamed(.exclusive, mode: 0o600) { return file }
        let name = RelativePath(".diskcache-\(String(UInt64.random(in: 0 ... .max), radix: 36))")
        let file = try directory.open(name, [.readWrite, .create, .exclusive], mode: 0o600)
        try directory.unlink(name)
        return file
    }
}
