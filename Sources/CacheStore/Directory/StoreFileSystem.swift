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
    ///
    /// - Parameter form: that the directory was made with.
    /// - Throws: what keeps this process from reading attributes, where records may be in them.
    func examine(
        _ root: borrowing Directory,
        _ locks: borrowing Directory,
        _ form: RecordForm
    ) throws(CacheError) -> StoreFileSystem {
        var found = try probe(root, locks, isForRecords: form == .attribute)
        let (kind, blockSize) = try describing("look at the file system of", path) { () throws(Errno) in
            try root.descriptor.fileSystem()
        }
        // Read only for file systems to which it applies.
        let configured = kind.isRemote || !kind.storesNeedNoRoom ? configuredLimits(root) : CacheLimits()
        let isAssumedLocal = kind.isRemote && configured.assumesLocal == true
        if assumed == nil {
            found.capabilities.sharedMapping = SharedMapping(on: kind, isAssumedLocal: isAssumedLocal)
        }
        if found.capabilities.sharedMapping == .memory, configured.sharesMemory == false {
            found.capabilities.sharedMapping = .none
        }
        if form == .sidecar { found.capabilities.attributes = .absent }
        if form == .attribute, found.capabilities.attributes == .absent {
            throw unreadableAttributes(found.refusal ?? .notSupported)
        }
        return StoreFileSystem(
            kind: kind,
            blockSize: blockSize,
            capabilities: found.capabilities,
            isAssumedLocal: isAssumedLocal,
            isWritable: found.isWritable
        )
    }

    private func unreadableAttributes(_ cause: Errno) -> CacheError {
        let code = CacheError(errno: cause, "", path: path).code
        let reason = "its metadata is in extended attributes, which this process can't read: \(cause)"
        let advice = "allow the xattr calls if this is a sandbox, or use a directory of its own"
        let message = "open the cache directory \(path): \(reason): \(advice)"
        return CacheError(code, message, cause: cause, path: path, reason: reason)
    }

    /// The limits in the directory's configuration; none if it can't be read, which a put reports.
    private func configuredLimits(_ root: borrowing Directory) -> CacheLimits {
        do throws(CacheError) {
            let path = "\(path)/\(StoreLayout.configuration)"
            return try DirectoryConfiguration.read(in: root, path).limits
        } catch {
            return CacheLimits()
        }
    }

    /// What a process can do in a directory.
    struct Probe {
        var capabilities: Capabilities
        var isWritable = true
        /// Why it can't read attributes.
        var refusal: Errno?
    }

    /// Tries out on a file without a name what works.
    ///
    /// - Parameter isForRecords: whether it matters what can be done with attributes.
    func probe(
        _ root: borrowing Directory,
        _ locks: borrowing Directory,
        isForRecords: Bool = true
    ) throws(CacheError) -> Probe {
        var found = try describing("probe the file system", path) { () throws(Errno) -> Probe in
            let unnamed = Capabilities(attributes: .absent, unnamedFiles: Directory.canLinkUnnamed)
            let named = Capabilities(attributes: .absent, unnamedFiles: false)
            do throws(Errno) {
                let file = try locks.open(".", [.readWrite, .temporary], mode: FileMode.file)
                return try isForRecords ? probe(file, unnamed) : Probe(capabilities: unnamed)
            } catch {
                switch error.meaning {
                case .readOnly, .forbidden:
                    let probe = Probe(capabilities: named, isWritable: false)
                    if !isForRecords { return probe }
                    // A process that can't write may still read.
                    return try self.probe(reading: probe) { () throws(Errno) in
                        try root.attribute(StoreLayout.recordAttribute, of: StoreLayout.format)
                    }
                case .unsupported, .notAFile:
                    // Where there are no such files, on the lock file of the set-up.
                    let file = try locks.open(
                        StoreLayout.formatLock,
                        [.readWrite, .create],
                        mode: FileMode.file
                    )
                    return try isForRecords ? probe(file, named) : Probe(capabilities: named)
                case .noRoom:
                    // A full disk must not keep anybody from reading; what can't be had fails by itself.
                    return Probe(
                        capabilities: Capabilities(attributes: .writable, unnamedFiles: unnamed.unnamedFiles)
                    )
                default: throw error
                }
            }
        }
        if let assumed { found.capabilities = assumed }
        return found
    }

    /// Tries out on a file what can be done with attributes.
    private func probe(
        _ file: borrowing FileDescriptor,
        _ capabilities: Capabilities
    ) throws(Errno) -> Probe {
        var probe = Probe(capabilities: capabilities)
        let value: [UInt8] = [1]
        do throws(Errno) {
            try file.setAttribute(StoreLayout.recordAttribute, to: value.span)
            probe.capabilities.attributes = .writable
            return probe
        } catch {
            switch error.meaning {
            // No room just now says nothing about tomorrow.
            case .noRoom:
                probe.capabilities.attributes = .writable
                return probe
            // Whatever it is, who only reads does not need it.
            default:
                return try self.probe(reading: probe) { () throws(Errno) in
                    try file.attribute(StoreLayout.recordAttribute)
                }
            }
        }
    }

    /// Tries out whether attributes can be read, where they can't be set.
    private func probe(
        reading probe: Probe,
        _ read: () throws(Errno) -> [UInt8]?
    ) throws(Errno) -> Probe {
        var probe = probe
        do throws(Errno) {
            _ = try read()
            probe.capabilities.attributes = .readable
        } catch {
            guard error.meaning == .unsupported || error.meaning == .forbidden else { throw error }
            probe.refusal = error
        }
        return probe
    }
}
