// SPDX-License-Identifier: Apache-2.0

import Platform

/// `diskcache dir`.
enum DirectoryCommand: Command {
    static let name = "dir"
    static let summary = "print the cache directory"
    static let details = """
        All commands with the same --dir and environment use this directory. It need not exist.

        Exit status: 0 done; 64 usage.

        Example:
          du -sh "$(diskcache dir)"
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let path = try arguments.directory()
        if Terminal.isInteractive(Terminal.standardOutput) {
            try Output.draw(path.singleLine + "\n", to: Terminal.standardOutput)
        } else {
            // Writes the exact bytes, unescaped, because scripts use the path.
            try Output.toStandardOutput { output in
                try output.writeRaw((path.pathBytes + [UInt8(ascii: "\n")]).span)
            }
        }
        return .done
    }
}
