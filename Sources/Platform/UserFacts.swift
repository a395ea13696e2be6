// SPDX-License-Identifier: Apache-2.0

import Glibc

extension CurrentProcess {
    /// The bytes of an environment variable, nil where it is not set.
    ///
    /// C: `getenv`.
    package static func environmentBytes(_ name: String) -> [UInt8]? {
        guard let bytes = unsafe getenv(name) else { return nil }
        return unsafe [UInt8](UnsafeRawBufferPointer(start: bytes, count: strlen(bytes)))
    }

    /// The bytes of the path of the working directory, without symbolic links.
    ///
    /// C: `getcwd`.
    ///
    /// - Throws: ``Errno/noEntry`` where it was removed.
    package static func workingDirectory() throws(Errno) -> [UInt8] {
        guard let path = unsafe getcwd(nil, 0) else { throw .current }
        defer { unsafe free(path) }
        return unsafe [UInt8](UnsafeRawBufferPointer(start: path, count: strlen(path)))
    }
}

extension Timestamp {
    /// When the file at a path of the user's was last modified; symbolic links are followed.
    ///
    /// C: `stat`.
    package init(modificationOf path: String) throws(Errno) {
        var status = stat()
        try nothingOrErrno { unsafe stat(path, &status) }
        self.init(status.st_mtim)
    }
}

extension FileDescriptor {
    /// A new file that has no name, or none any more, in the directory at `path`.
    ///
    /// C: `open(O_TMPFILE)`, or `open`, `unlink` where the file system lacks that.
    package init(unnamedIn path: String) throws(Errno) {
        do throws(Errno) {
            try self.init(opening: path, [.readWrite, .temporary])
        } catch {
            switch error {
            case .notSupported, .isDirectory, .invalidArgument: break
            default: throw error
            }
            var generator = SystemRandomNumberGenerator()
            let name = "\(path)/.\(String(generator.next(), radix: 36)).part"
            try self.init(opening: name, [.readWrite, .create, .exclusive])
            _ = unsafe unlink(name)
        }
    }

    /// Writes some of `bytes`, at least one, and says how many.
    ///
    /// C: `write`.
    ///
    /// A pipe that poll(2) calls writable takes 4096 (PIPE_BUF) without making anybody wait.
    package func writeSome(_ bytes: Span<UInt8>) throws(Errno) -> Int {
        try FileSizeLimit.admit(self)
        return try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in
            try valueOrErrno { unsafe Glibc.write(rawValue, buffer.baseAddress, buffer.count) }
        }
    }
}
