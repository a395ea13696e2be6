// SPDX-License-Identifier: Apache-2.0

import Platform

/// The script that completes for bash.
///
/// It needs nothing but bash 4.3: not the package bash-completion. No word of the line is expanded or executed,
/// and keys come out quoted as a shell reads them.
enum BashCompletion {
    static func script(_ commands: [CompletedCommand], _ options: [Option]) -> String {
        let names = commands.map(\.name).joined(separator: " ")
        let global = arm("''", options, operands: ["words \(names)"], repeats: false, stops: true)
        let arms = commands.map { command in
            arm(
                command.name,
                command.options,
                operands: command.operands.map(kind),
                repeats: command.repeatsLast,
                stops: command.stopsAtOperand
            )
        }
        return """
            # Completes the words of diskcache in bash. Written by `diskcache completions bash`.

            # Sets what the command $1 takes; '' stands for the words before the command.
            __diskcache_command() {
                case $1 in
            \(([global] + arms).joined(separator: "\n"))
                *) return 1 ;;
                esac
            }

            # Sets kind to what the value of the option $2 of the command $1 can be.
            __diskcache_value() {
                case $1/$2 in
            \(values(commands, options).joined(separator: "\n"))
                *) kind= ;;
                esac
            }

            \(functions)
            complete -F _diskcache diskcache

            """
    }

    /// What the script calls a completion.
    private static func kind(_ completion: Completion) -> String {
        switch completion {
        case .nothing: ""
        case .files: "files"
        case .directories: "directories"
        case .keys: "keys"
        case .command: "command"
        case .words(let words): "words " + words.joined(separator: " ")
        }
    }

    private static func arm(
        _ pattern: String,
        _ options: [Option],
        operands: [String],
        repeats: Bool,
        stops: Bool
    ) -> String {
        let names = options.map { "--\($0.specification.name)" }.joined(separator: " ")
        let valued = options.filter { $0.specification.argument == .required }.flatMap(\.spellings)
        return """
                \(pattern))
                    options='\(names)'
                    valued=' \(valued.joined(separator: " ")) '
                    operands=(\(operands.map { "'\($0)'" }.joined(separator: " ")))
                    repeats=\(repeats ? "1" : "") stops=\(stops ? "1" : "") ;;
            """
    }

    private static func values(_ commands: [CompletedCommand], _ options: [Option]) -> [String] {
        let all = [("", options)] + commands.map { ($0.name, $0.options) }
        return all.flatMap { command, options in
            options.filter { $0.completion != .nothing }.map { option in
                let patterns = option.spellings.map { "\(command)/\($0)" }.joined(separator: " | ")
                return "    \(patterns)) kind='\(kind(option.completion))' ;;"
            }
        }
    }
}
