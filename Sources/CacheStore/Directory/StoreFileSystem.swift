// SPDX-License-Identifier: Apache-2.0

import Platform

/// The file system of a cache directory, as probed when the directory was opened.
package struct StoreFileSystem: Sendable {
    let kind: FileSystemKind
    /// The unit of allocation.
    let blockSize: Int64
    package let capabilities: Capabilities
    /// Whether `config.json` declares it to be local, though it is not recognized as such.
    package let isAssumedLocal: Bool
    /// False if the file system or the permissions forbid writing: then only reading works.
    package let isWritable: Bool
}

extension StoreSetup {
    /// Determines the kind of `root`'s file system, and probes its capabilities with a file in `locks`.
    ///
    /// - Parameter form: The form of records that the directory was created with.
    /// - Throws: The error if this process can't read attributes and records may be in them.
    func examine(
        _ root: borrowing Directory,
        _ locks: borrowing Directory,
        _ form: RecordForm
    ) throws(CacheError) -> StoreFileSystem {
        var found = try probe(root, locks, isForRecords: form == .attribute)
        let (kind, blockSize) = try describing("look at the file system of", path) { () throws(Errno) in
            try root.descriptor.fileSystem()
        }
        // The configuration is read only for file systems to which it applies.
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

    /// The limits in the directory's configuration; no limits if it can't be read, which a put reports.
    private func configuredLimits(_ root: borrowing Directory) -> CacheLimits {
        do throws(CacheError) {
            let path = "\(path)/\(StoreLayout.configuration)"
            return try DirectoryConfiguration.read(in: root, path).limits
        } catch {
            return CacheLimits()
        }
    }

    /// The result of probing a directory.
    struct Probe {
        var capabilities: Capabilities
        var isWritable = true
        /// Why this process can't read attributes.
        var refusal: Errno?
    }

    /// Probes the capabilities with an unnamed file.
    ///
    /// - Parameter isForRecords: Whether to probe attributes, too.
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
                    // Without unnamed files, the lock file of the set-up is used.
                    let file = try locks.open(
                        StoreLayout.formatLock,
                        [.readWrite, .create],
                        mode: FileMode.file
                    )
                    return try isForRecords ? probe(file, named) : Probe(capabilities: named)
                case .noRoom:
                    // A full disk must not prevent reading; operations that need more fail later.
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

    /// Probes the support for attributes with a file.
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
            // A lack of room is temporary.
            case .noRoom:
                probe.capabilities.attributes = .writable
                return probe
            // Whatever the error is, it does not affect reading.
            default:
                return try self.probe(reading: probe) { () throws(Errno) in
                    try file.attribute(StoreLayout.recordAttribute)
                }
            }
        }
    }

    /// Probes whether attributes that can't be set can be read.
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
