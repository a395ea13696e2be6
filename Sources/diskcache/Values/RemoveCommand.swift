// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache rm`.
enum RemoveCommand: Command {
    static let name = "rm"
    static let operands = "[KEY]…"
    static let summary = "remove values by key or by tag"
    static let optionList = """
        --tag TAG…  all values with this tag
        \(Option.json)
        """
    static let details = """
        Once rm returns, no process gets the values any more. The next `diskcache gc` reclaims their space.
        Removing by tag looks at every entry. With both KEY and --tag TAG, removes the key and everything with
        the tag. A key that begins with - needs -- before it.

        JSON: {"removed": number of keys}.

        Exit status: 0 something was removed; 1 there was nothing to remove; 64 usage; 73 not a directory, or
        a read-only file system; 77 permission; 78 not a cache.

        Examples:
          diskcache rm page thumb:17
          diskcache rm --tag user:1
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let tags = try arguments.tags()
        let keys = arguments.operands
        if keys.isEmpty, tags.isEmpty {
            throw Failure.usage("rm: missing operand: give KEY… or --tag TAG; see `diskcache rm --help`")
        }
        // All of them first, so that a wrong word is not found when half is done.
        for key in keys { try arguments.check(key) }
        var removed = 0
        if let cache = try arguments.openExistingCache() {
            for key in keys where try cache.remove(forKey: key) { removed += 1 }
            for tag in tags {
                for entry in try cache.entries(.tagged(tag)) {
                    _ = try entry.get()
                    removed += 1
                }
                try cache.removeAll(.tagged(tag))
            }
        }
        try arguments.print("", json: ["removed": removed])
        return removed > 0 ? .done : .miss
    }
}
