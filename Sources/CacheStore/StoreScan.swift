// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What lies in the cache where nothing of ours belongs; it is reported and never touched.
package struct UnrecognisedFile: Sendable, Equatable, Codable {
    /// Below the cache directory.
    package let path: String
}

/// Walking the shards of `entries` and `objects`, one at a time, while others go on writing.
///
/// A file that vanishes between its listing and a look at it is left out. Memory: the names of one shard.
package struct StoreScan: Sendable {
    private let store: Store

    package init(of store: Store) {
        self.store = store
    }

    /// One of the two trees.
    package enum Tree: Sendable {
        case entries, objects
    }

    /// The digests in one of 256 shards that name files of ours, and the names that do not.
    package func digests(
        _ tree: Tree,
        shard: Int
    ) throws(StoreError) -> (digests: [Digest], unrecognised: [UnrecognisedFile]) {
        let name = StoreLayout.shards[shard]
        let place = "\(tree == .entries ? StoreLayout.entries : StoreLayout.objects)/\(name)"
        let names: [String]?
        do throws(Errno) {
            names = try ifExists { () throws(Errno) in
                switch tree {
                case .entries: try store.directory.entries.openDirectory(name).names()
                case .objects: try store.directory.objects.openDirectory(name).names()
                }
            }
        } catch {
            // No directory of ours, so nothing of ours is in it.
            if error == .notDirectory || error == .tooManyLinks {
                return ([], [UnrecognisedFile(path: place)])
            }
            throw StoreError(errno: error, "list", path: "\(store.directory.path)/\(place)")
        }
        var digests: [Digest] = []
        var unrecognised: [UnrecognisedFile] = []
        for name in names ?? [] {
            if let digest = Digest(hexadecimal: name), Int(digest.bytes[0]) == shard {
                digests.append(digest)
            } else {
                unrecognised.append(UnrecognisedFile(path: "\(place)/\(name)"))
            }
        }
        return (digests, unrecognised)
    }

    /// An entry with its file's state; nil where it is gone, or something other than a file bears its name.
    package func entry(
        _ key: Digest
    ) throws(StoreError) -> (stored: StoredEntry, status: FileStatus)? {
        // The status first: an access or a write after it changes what is compared later.
        guard let status = try store.entries.status(of: key), status.kind == .regular,
            let stored = try store.entries.read(key)
        else { return nil }
        return (stored, status)
    }

    /// The same in the form that a sweep plans with.
    package func scannedEntry(_ key: Digest, now: Timestamp) throws(StoreError) -> ScannedEntry? {
        guard let (stored, status) = try entry(key) else { return nil }
        let record = stored.record
        return ScannedEntry(
            key: key,
            content: record?.content.digest,
            created: record?.created ?? now,
            lastUse: record?.lastUse(accessed: status.accessed, now: now) ?? now,
            isExpired: record?.freshness(at: now, accessed: status.accessed) == .expired,
            allocatedSize: status.allocatedSize,
            witness: ScannedEntry.Witness(
                identity: status.identity,
                accessed: status.accessed,
                record: stored.bytes.hashValue
            )
        )
    }

    /// An object's state; nil where it is gone.
    package func object(_ digest: Digest) throws(StoreError) -> ScannedObject? {
        guard let status = try store.objects.status(of: digest), status.kind == .regular else { return nil }
        return ScannedObject(
            digest: digest,
            allocatedSize: status.allocatedSize,
            changed: status.changed
        )
    }
}
