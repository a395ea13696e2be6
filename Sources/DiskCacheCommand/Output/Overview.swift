// SPDX-License-Identifier: Apache-2.0

/// What `diskcache --help` and the manual page say about the whole command.
enum Overview {
    static let version = "0.1.0"

    static let options = [
        Option("-d, --dir DIR  the cache directory"), Option("-h, --help  show help"),
        Option("--version  print the version"),
    ]

    static let promise =
        "One cache directory for all processes of a machine: no server, no wrong bytes, safe at any kill."

    static let conventions = """
        The directory is --dir, else $DISKCACHE_DIR, else ${XDG_CACHE_HOME:-~/.cache}/diskcache; `put`,
        `incr`, `run`, `lock`, `serve` and `config set` create it if it is missing. Sizes are written like 64K or
        2G (powers of 1024), times like 90s, 15m, 1h30m, 7d.

        A scope, --scope or $DISKCACHE_SCOPE, is a text that the commands about single keys put in front of
        each: with the scope thumbs/ the key 17 is stored as thumbs/17, as `ls`, --prefix and --glob know it.
        """

    static let statuses = """
        0 done; 1 a miss, or nothing found; 64 usage; 65 corrupt data found; 69 a server can't be used;
        70 internal; 73 can't create; 74 input or output; 75 try again; 77 permission; 78 configuration
        """

    /// Returns the overview of these commands, which `diskcache --help` prints.
    static func text(of commands: [any Command.Type]) -> String {
        let lines = commands.map {
            Table.line(["  \($0.name)", $0.summary], [.left, .left], widths: [13, 0])
        }
        return """
            Usage: diskcache [--dir DIR] COMMAND [OPTION]…

            \(promise)

            Commands (each has --help):
            \(lines.joined())
            Options:
            \(options.map(\.line).joined())
            \(conventions)

            Exit status: \(statuses).

            """
    }
}
