// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials

/// Lists of keys, which are values themselves: a store knows values by their names, and can't say which it
/// has.
///
/// Each key is followed by a NUL, as `ls --null` writes them.
enum KeyList {
    /// What a list is kept under: "diskcache:list prefix thumbs/".
    static func key(for selection: KeySelection) -> String {
        switch selection.form {
        case .all: "diskcache:list all"
        case .prefix(let text): "diskcache:list prefix \(text)"
        case .tagged(let tag): "diskcache:list tag \(tag)"
        case .glob(let pattern): "diskcache:list glob \(pattern)"
        }
    }

    /// It goes with what keeps the directory within its limits, and no sooner.
    static let terms = PutOptions(contentType: "application/x-diskcache-keys")

    /// The keys that a selection means now, without lists, without what stays on this machine, such as the URLs of
    /// downloads, and without those that are not kept or have a NUL.
    static func keys(of selection: KeySelection, in cache: SharedCache) throws -> [String] {
        var keys: [String] = []
        for result in try cache.entries(selection) {
            // What can't be read can't be sent.
            guard case .success(let entry) = result, !entry.staysHere, let key = entry.key else { continue }
            if isListed(key) { keys.append(key) }
        }
        return keys
    }

    /// Whether a list may have this key.
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

    /// The keys of what ``data(_:)`` has written for `selection`.
    ///
    /// The list comes from another machine: what is no key, or has not the prefix that was asked for, is left out. Tags
    /// are with the values.
    static func keys(in data: Data, for selection: KeySelection) -> [String] {
        let keys = data.split(separator: 0).compactMap { String(validating: $0, as: UTF8.self) }
        return keys.filter { isListed($0) && selection.mayInclude(key: $0) }
    }
}
