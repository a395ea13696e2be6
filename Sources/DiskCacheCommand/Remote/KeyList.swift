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

    /// The keys that a selection means now, without lists, and without those that are not kept or have a NUL.
    static func keys(of selection: KeySelection, in cache: SharedCache) throws -> [String] {
        var keys: [String] = []
        for result in try cache.entries(selection) {
            // What can't be read can't be sent.
            guard case .success(let entry) = result, let key = entry.key else { continue }
            if !key.utf8.contains(0), !key.hasPrefix("diskcache:list ") { keys.append(key) }
        }
        return keys
    }

    static func data(_ keys: [String]) -> Data {
        var data = Data()
        for key in keys {
            data.append(contentsOf: key.utf8)
            data.append(0)
        }
        return data
    }

    /// What ``data(_:)`` has written; what is no key is left out.
    static func keys(in data: Data) -> [String] {
        data.split(separator: 0).compactMap { String(validating: $0, as: UTF8.self) }
    }
}
