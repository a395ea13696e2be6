// SPDX-License-Identifier: Apache-2.0

/// The texts about the whole command in `diskcache --help` and the manual page.
enum Overview {
    static let version = "0.1.0"

    static let options = [
        Option("-d, --dir DIR  the cache directory"), Option("-h, --help  show help"),
        Option("--version  print the version"),
    ]

    static let promise =
        "A cache directory for all processes on a machine: no server, no wrong bytes, safe if one is killed."

    static let conventions = """
        The cache directory is --dir, else $DISKCACHE_DIR, else ${XDG_CACHE_HOME:-~/.cache}/diskcache. `put`,
        `incr`, `run`, `lock`, `serve`, `fetch` and `config set` create it if it is missing. Write sizes like
        64K or 2G (powers of 1024), and time spans like 90s, 15m, 1h30m or 7d.

        A scope (--scope or $DISKCACHE_SCOPE) is a prefix that commands add to each KEY: with the scope
        thumbs/, the key 17 is stored as thumbs/17. `ls`, --prefix and --glob use the full key.
        """

    static let statuses = """
        0 done; 1 a miss, or nothing found; 64 usage error; 65 corrupt data found; 69 server unavailable;
        70 internal error; 73 can't create; 74 input/output error; 75 temporary failure, try again;
        77 permission denied; 78 configuration error
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
