// SPDX-License-Identifier: Apache-2.0

import Platform

/// `diskcache completions`.
enum CompletionsCommand: Command {
    static let name = "completions"
    static let operands = "SHELL"
    static let operandChoices = [["bash", "zsh", "fish"]]
    static let summary = "print a completion script for bash, zsh or fish"
    static let details = """
        Completes commands, options and their values, files, directories and keys: at most 200 keys, found
        within a quarter of a second, and none that contains a control character.

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

/// `diskcache complete -- WORD…`, which the shells' scripts call: prints a line with ``Proposals/kind``, then
/// ``Proposals/words``.
enum CompleteCommand: Command {
    static let name = "complete"
    static let operands = "[--] [WORD]…"
    static let summary = "list the words that could stand at the end of a command line"

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let proposals = Proposals(for: arguments.operands)
        let lines = ([proposals.kind] + proposals.words).map { $0 + "\n" }
        try Output.draw(lines.joined(), to: Terminal.standardOutput)
        return .done
    }
}
