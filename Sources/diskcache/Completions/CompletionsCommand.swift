// SPDX-License-Identifier: Apache-2.0

/// `diskcache completions`.
enum CompletionsCommand: Command {
    static let name = "completions"
    static let operands = "SHELL"
    static let operandChoices = [Shell.allCases.map(\.rawValue)]
    static let summary = "print what bash, zsh or fish need to complete this command's words"
    static let options: [Option] = []
    static let details = """
        Completes commands, options and their values, files, directories and keys. Of keys those are proposed
        that begin like what is there, 200 at most, found within a quarter of a second; none with a control
        character in it.

        `make install` puts all three where the shells look for them.

        Exit status: 0 done; 64 usage.

        Examples:
          diskcache completions bash > ~/.local/share/bash-completion/completions/diskcache
          diskcache completions zsh > ~/.zfunc/_diskcache    # a directory of $fpath
          diskcache completions fish > ~/.config/fish/completions/diskcache.fish
        """

    /// The shells there are scripts for.
    enum Shell: String, CaseIterable {
        case bash, zsh, fish

        var script: String {
            let commands = CompletedCommand.all
            return switch self {
            case .bash: BashCompletion.script(commands, DiskCacheTool.options)
            case .zsh: ZshCompletion.script(commands, DiskCacheTool.options)
            case .fish: FishCompletion.script(commands, DiskCacheTool.options)
            }
        }
    }

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(1...1, "bash, zsh or fish")
        guard let shell = Shell(rawValue: arguments.operands[0]) else {
            throw Failure.usage(
                "completions: \(arguments.operands[0]) is no shell known here: give bash, zsh or fish"
            )
        }
        try Output.print(shell.script)
        return .done
    }
}
