// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache rm`.
enum RemoveCommand: Command {
    static let name = "rm"
    static let operands = "[KEY]…"
    static let summary = "remove values by key, by prefix, by pattern or by tag"
    static let optionList = """
        --prefix TEXT…  all keys that begin with TEXT
        --glob PATTERN…  all keys that match PATTERN, such as 'a*' or '*.png'
        --tag TAG…  all values with this tag
        \(Option.scope)
        \(Option.json)
        """
    static let details = """
        After rm returns, no process gets the values. The next `diskcache gc` reclaims their space. Removing
        by prefix or by tag takes one step for any number of keys; removing by pattern reads every entry. KEY
        and the options can be combined. Put -- before a key that begins with -.

        \(SelectionOptions.help)
        Keys stored only as digests (longer than 1 KiB, or on request) match every prefix and no pattern.

        If config.json names remote stores that this machine may write to, rm also removes each KEY there, but
        not the keys that the options match.

        JSON: {"removed": number of keys}; for keys matched by options, their number just before the removal,
        for which rm reads every entry.

        Exit status: 0 a KEY had an unexpired value, or --prefix, --glob or --tag was given; 1 no KEY had one,
        or there is no cache; 64 usage; 73 not a directory, or a read-only file system; 77 permission; 78 not
        a cache.

        Examples:
          diskcache rm page thumb:17
          diskcache rm --tag user:1
          diskcache rm --prefix thumbs/ --glob '*.tmp'
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let selections = try SelectionOptions.selections(arguments)
        if arguments.operands.isEmpty, selections.isEmpty {
            let options = "KEY…, --prefix TEXT, --glob PATTERN or --tag TAG"
            throw Failure.usage("rm: missing operand: give \(options); see `diskcache rm --help`")
        }
        // All keys are checked before the first one is removed.
        let keys = try arguments.operands.map { try arguments.key($0) }
        var removed = 0
        arguments.shareIfConfigured()
        let cache = try arguments.openExistingCache(sharing: true)
        if let cache {
            for key in keys where try cache.remove(forKey: key) { removed += 1 }
            for selection in selections {
                // Counting takes time proportional to the number of keys, so it is done only on request.
                if arguments.has("json") { removed += try count(selection, in: cache) }
                try cache.removeAll(selection)
            }
        }
        try arguments.print("", json: ["removed": removed])
        return removed > 0 || cache != nil && !selections.isEmpty ? .done : .miss
    }

    private static func count(_ selection: KeySelection, in cache: SharedCache) throws -> Int {
        var count = 0
        for result in try cache.entries(selection) {
            // Does not count unreadable entries.
            if case .success = result { count += 1 }
        }
        return count
    }
}
