// SPDX-License-Identifier: Apache-2.0

import Platform

/// `diskcache completions`.
enum CompletionsCommand: Command {
    static let name = "completions"
    static let operands = "SHELL"
    static let operandChoices = [["bash", "zsh", "fish"]]
    static let summary = "print a completion script for bash, zsh or fish"
    static let details = """
        The script completes commands, options and their values, files, directories and keys. It offers at
        most 200 keys, found within a quarter of a second, and none that contains a control character.

        `make install` installs all three scripts where the shells look for them.

        Exit status: 0 done; 64 usage.

        Examples:
          diskcache completions bash > ~/.local/share/bash-completion/completions/diskcache
          diskcache completions zsh > ~/.zfunc/_diskcache    # a directory of $fpath
          diskcache completions fish > ~/.config/fish/completions/diskcache.fish
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let shell = arguments.operands[0]
        guard let script = Shell.scripts[shell] else {
            throw Failure.usage("completions: unknown shell '\(shell)': give bash, zsh or fish")
        }
        try Output.print(script)
        return .done
    }
}
