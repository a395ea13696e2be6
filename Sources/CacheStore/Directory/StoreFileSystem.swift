// SPDX-License-Identifier: Apache-2.0

import Platform

/// The file system of a cache directory, as it was found when the directory was opened.
package struct StoreFileSystem: Sendable {
    let kind: FileSystemKind
    /// The unit in which it allocates space.
    let blockSize: Int64
    package let capabilities: Capabilities
    /// Whether `config.json` says that it is local, though it does not look so.
    package let isAssumedLocal: Bool
    /// False where it or the permissions allow no writing: then only reading works.
    package let isWritable: Bool
}

extension StoreSetup {
    /// Finds out what the file system of `root` is, and by a file in `locks` what it can do.
    func examine(
        _ root: borrowing Directory,
        _ locks: borrowing Directory
    ) throws(CacheError) -> StoreFileSystem {
        let (probed, isWritable) = try probe(locks)
        let (kind, blockSize) = try describing("look at the file system of", path) { () throws(Errno) in
            try root.descriptor.fileSystem()
        }
        let isAssumedLocal = kind.isRemote && assumesLocal(root)
        var found = probed
        found.sharedMapping = SharedMapping(on: kind, isAssumedLocal: isAssumedLocal)
        return StoreFileSystem(
            kind: kind,
            blockSize: blockSize,
            capabilities: assumed ?? found,
            isAssumedLocal: isAssumedLocal,
            isWritable: isWritable
        )
    }

    /// Whether the cache's configuration says that its file system is local; false where it can't be read, which is
    /// reported to whoever needs its limits.
    private func assumesLocal(_ root: borrowing Directory) -> Bool {
        do throws(CacheError) {
            let path = "\(path)/\(StoreLayout.configuration)"
            return try DirectoryConfiguration.read(in: root, path).limits.assumesLocal ?? false
        } catch {
            return false
        }
    }

    /// Tries out on a file without a name what works.
    private func probe(_ locks: borrowing Directory) throws(CacheError) -> (Capabilities, isWritable: Bool) {
        try describing("probe the file system", path) { () throws(Errno) -> (Capabilities, Bool) in
            do throws(Errno) {
                let file = try locks.open(".", [.readWrite, .temporary], mode: FileMode.file)
                let attributes = try self.attributes(of: file)
                return (Capabilities(attributes: attributes, unnamedFiles: Directory.canLinkUnnamed), true)
            } catch {
                switch error {
                case .readOnlyFileSystem, .accessDenied, .notPermitted:
                    // Attributes are looked for in any case: a process that can't write may still read.
                    return (Capabilities(attributes: .readable, unnamedFiles: false), false)
                case .notSupported, .isDirectory, .invalidArgument:
                    // Where there are no such files, on the lock file of the set-up.
                    let file = try locks.open(
                        StoreLayout.formatLock,
                        [.readWrite, .create],
                        mode: FileMode.file
                    )
                    return (Capabilities(attributes: try attributes(of: file), unnamedFiles: false), true)
                case .noSpace, .quotaExceeded:
                    // A full disk must not keep anybody from reading; what can't be had fails by itself.
                    return (Capabilities(attributes: .writable, unnamedFiles: Directory.canLinkUnnamed), true)
                default: throw error
                }
            }
        }
    }

    private func attributes(of file: borrowing FileDescriptor) throws(Errno) -> Capabilities.Attributes {
        let value: [UInt8] = [1]
        do throws(Errno) {
            try file.setAttribute(StoreLayout.recordAttribute, to: value.span)
            return .writable
        } catch {
            switch error {
            case .notSupported: return .absent
            case .notPermitted, .accessDenied: return .readable
            // No room just now says nothing about tomorrow.
            case .noSpace, .quotaExceeded: return .writable
            default: throw error
            }
        }
    }
}
