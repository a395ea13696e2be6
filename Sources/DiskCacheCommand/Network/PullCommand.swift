// SPDX-License-Identifier: Apache-2.0

/// `diskcache pull`.
enum PullCommand: Command {
    static let name = "pull"
    static let operands = "[KEY]…"
    static let summary = "get values from the remote stores"
    static let optionList = """
        --prefix TEXT…  all values that were pushed with the same --prefix
        --tag TAG…  all values that were pushed with the same --tag
        -p, --parallel NUMBER  send up to NUMBER requests in parallel (default 8)
        \(Option.scope)
        \(Option.json)
        """
    static let details = """
        `get` fetches missing values on demand; pull prefetches them. A store can't list its keys, so --prefix
        and --tag use the list that push has stored there. pull takes only keys with the prefix, and values
        with the tag, from that list. KEY and the options can be combined. Values beyond the limits of the
        directory are evicted as usual. Creates no directory. Put -- before a key that begins with -.

        JSON: keys, bytes (of the fetched values), present (keys that were already here), missing (keys that
        no store has, or for which no store could be asked), failed (requests).

        Exit status: 0 all values are here; 1 no store has one of the keys, or a list; 64 usage; 69 the stores
        can't be reached; 73 no space; 77 permission; 78 not a cache, or config.json names no store.

        Examples:
          diskcache pull page thumb:17
          diskcache pull --prefix thumbs/
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus { throw arguments.restartWithNetwork() }
}
