// SPDX-License-Identifier: Apache-2.0

import Platform

/// `diskcache dir`.
enum DirectoryCommand: Command {
    static let name = "dir"
    static let summary = "print the cache directory"
    static let details = """
        The one that all commands use with the same --dir and environment, whether it exists or not.

        Exit status: 0 done; 64 usage.

        Example:
          du -sh "$(diskcache dir)"
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let path = try arguments.directory()
        // Who isn't a terminal gets the very bytes, as it may be about to use the path.
        let isSeen = Terminal.isInteractive(Terminal.standardOutput)
        try Output.draw((isSeen ? path.singleLine : path) + "\n", to: Terminal.standardOutput)
        return .done
    }
}
