// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials

/// Lists of keys, stored as values: a store finds values by name, and can't list them.
///
/// Each key is followed by a NUL, as in the output of `ls --null`.
enum KeyList {
    /// Returns the key of a list: "diskcache:list prefix thumbs/".
    static func key(for selection: KeySelection) -> String {
        switch selection.form {
        case .all: "diskcache:list all"
        case .prefix(let text): "diskcache:list prefix \(text)"
        case .tagged(let tag): "diskcache:list tag \(tag)"
        case .glob(let pattern): "diskcache:list glob \(pattern)"
        }
    }

    /// The options of a list, which is evicted only by the directory's limits.
    static let terms = PutOptions(contentType: "application/x-diskcache-keys")

    /// Returns the keys that a selection currently includes.
    ///
    /// Omitted are lists, keys of values that stay on this machine, such as the URLs of downloads, and keys that are not
    /// stored or contain a NUL.
    static func keys(of selection: KeySelection, in cache: SharedCache) throws -> [String] {
        var keys: [String] = []
        for result in try cache.entries(selection) {
            // An unreadable entry can't be sent.
            guard case .success(let entry) = result, !entry.staysHere, let key = entry.key else { continue }
            if isListed(key) { keys.append(key) }
        }
        return keys
    }

    /// Whether a list may contain the key.
    private static func isListed(_ key: String) -> Bool {
        !key.isEmpty && !key.utf8.contains(0) && !key.utf8.starts(with: "diskcache:list ".utf8)
    }

    static func data(_ keys: [String]) -> Data {
        var data = Data()
        for key in keys {
            data.append(contentsOf: key.utf8)
            data.append(0)
        }
        return data
    }

    /// Returns the keys in a list that ``data(_:)`` has created for `selection`.
    ///
    /// The list comes from another machine, so invalid keys and keys without the requested prefix are omitted. Tags are
    /// stored with the values.
    static func keys(in data: Data, for selection: KeySelection) -> [String] {
        let keys = data.split(separator: 0).compactMap { String(validating: $0, as: UTF8.self) }
        return keys.filter { isListed($0) && selection.mayInclude(key: $0) }
    }
}
