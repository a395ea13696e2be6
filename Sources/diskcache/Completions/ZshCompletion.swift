// SPDX-License-Identifier: Apache-2.0

import Platform

/// The script that completes for zsh, by its function `_arguments`.
enum ZshCompletion {
    static func script(_ commands: [CompletedCommand], _ options: [Option]) -> String {
        """
        #compdef diskcache
        # Completes the words of diskcache in zsh. Written by `diskcache completions zsh`.

        # Proposes keys of the cache that begin like what is there.
        _diskcache_keys() {
            local -a keys
            keys=(${(f)"$($program ${directory:+--dir} ${directory:+$directory} \\
                complete-keys -- "${(Q)PREFIX}" 2>/dev/null </dev/null)"})
            # Behind -- it is no option.
            if (( ! ${words[(I)--]} )); then keys=(${keys:#-*}); fi
            compadd -a keys
        }

        # Completes the words of another program.
        _diskcache_command() {
            if [[ $words[1] == -- ]]; then
                shift words
                (( CURRENT-- ))
            fi
            if (( CURRENT == 1 )); then _command_names -e; else _normal; fi
        }

        _diskcache() {
            local curcontext="$curcontext" state state_descr line directory program=$words[1]
            local -A opt_args
            local -a subcommands
            subcommands=(
        \(commands.map { "        \(quoted("\(described($0.name)):\($0.summary)"))" }.joined(separator: "\n"))
            )
            _arguments -s -S -C \\
        \(options.flatMap(specifications).map { "        \($0) \\" }.joined(separator: "\n"))
                '1:command:->command' '*::argument:->argument' && return
            directory=${(Q)${opt_args[--dir]:-$opt_args[-d]}}
            case $state in
            command) _describe -t commands command subcommands ;;
            argument)
                curcontext="${curcontext%:*:*}:diskcache-$words[1]:"
                case $words[1] in
        \(commands.map(arm).joined(separator: "\n"))
                esac ;;
            esac
        }

        # Whether it is loaded by compinit or sourced.
        if [[ $funcstack[1] == _diskcache ]]; then _diskcache "$@"; else compdef _diskcache diskcache; fi

        """
    }

    private static func arm(_ command: CompletedCommand) -> String {
        let options = command.options.flatMap(specifications)
        let operands = command.operands.enumerated().map { place, operand in
            let isLast = place == command.operands.count - 1
            if operand == .command { return "'*::command:_diskcache_command'" }
            let position = command.repeatsLast && isLast ? "*" : "\(place + 1)"
            return "'\(position):operand:\(action(operand))'"
        }
        // "-A" ends the options at the first operand, as getopt does.
        let style = command.stopsAtOperand ? "-s -S -A '-*'" : "-s -S"
        let all = (["_arguments \(style)"] + options + operands).joined(separator: " \\\n                ")
        return "        \(command.name)) \(all) ;;"
    }

    /// One for each spelling of the option.
    static func specifications(_ option: Option) -> [String] {
        let spellings = option.spellings
        let exclusive =
            option.isRepeatable
            ? "*" : spellings.count > 1 ? "(\(spellings.joined(separator: " ")))" : ""
        let help = described(option.help)
        return spellings.map { spelling in
            let isLong = spelling.hasPrefix("--")
            guard let placeholder = option.placeholder else {
                return quoted("\(exclusive)\(spelling)[\(help)]")
            }
            let isOptional = option.specification.argument == .optional
            let sign = isLong ? (isOptional ? "=-" : "=") : (isOptional ? "-" : "+")
            let value = "\(isOptional ? "::" : ":")\(described(placeholder)):\(action(option.completion))"
            return quoted("\(exclusive)\(spelling)\(sign)[\(help)]\(value)")
        }
    }

    private static func action(_ completion: Completion) -> String {
        switch completion {
        // A space: nothing to propose, but the name of what is wanted is shown.
        case .nothing: " "
        case .files: "_files"
        case .directories: "_files -/"
        case .keys: "_diskcache_keys"
        case .command: "_normal"
        case .words(let words): "(\(words.joined(separator: " ")))"
        }
    }

    /// Without the characters that end a description.
    private static func described(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            if #"\[]:"#.contains(character) { result += #"\"# }
            result.append(character)
        }
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }
}
