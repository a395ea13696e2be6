// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials

/// Lists of keys, which are stored as values, because a remote store can't list its keys.
///
/// In a list, a NUL follows each key, as in the output of `ls --null`.
enum KeyList {
    /// Returns the key under which a list is stored, such as "diskcache:list prefix thumbs/".
    static func key(for selection: KeySelection) -> String {
        switch selection.form {
        case .all: "diskcache:list all"
        case .prefix(let text): "diskcache:list prefix \(text)"
        case .tagged(let tag): "diskcache:list tag \(tag)"
        case .glob(let pattern): "diskcache:list glob \(pattern)"
        }
    }

    /// The options of a list; only the limits of the directory evict it.
    static let terms = PutOptions(contentType: "application/x-diskcache-keys")

    /// Returns the keys that a selection includes now.
    ///
    /// Omits lists, values that must stay on this machine (such as downloads), entries that do not store their key, and
    /// keys with a NUL.
    static func keys(of selection: KeySelection, in cache: SharedCache) throws -> [String] {
        var keys: [String] = []
        for result in try cache.entries(selection) {
            // Unreadable entries can't be sent.
            guard case .success(let entry) = result, !entry.staysHere, let key = entry.key else { continue }
            if isListed(key) { keys.append(key) }
        }
        return keys
    }

    /// Returns whether a list may contain the key.
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
    /// not checked here, because they are stored with the values.
    static func keys(in data: Data, for selection: KeySelection) -> [String] {
        let keys = data.split(separator: 0).compactMap { String(validating: $0, as: UTF8.self) }
        return keys.filter { isListed($0) && selection.mayInclude(key: $0) }
    }
}
