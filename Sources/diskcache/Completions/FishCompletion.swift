// SPDX-License-Identifier: Apache-2.0

import Platform

/// The script that completes for fish.
enum FishCompletion {
    static func script(_ commands: [CompletedCommand], _ options: [Option]) -> String {
        let stopping = commands.filter(\.stopsAtOperand).map(\.name).joined(separator: " ")
        let lines =
            options.map { line($0, condition: "__diskcache_at 0") }
            + commands.map { command in
                "complete -c diskcache -n '__diskcache_at 0' -f -a \(command.name) -d \(quoted(command.summary))"
            }
            + commands.flatMap(lines)
        return """
            # Completes the words of diskcache in fish. Written by `diskcache completions fish`.

            # The options of the command $argv[1] that want a value.
            function __diskcache_valued
                switch "x$argv[1]"
            \(([arm("", options)] + commands.map { arm($0.name, $0.options) }).joined(separator: "\n"))
                end
            end

            # The words before the cursor that are neither options nor their values: the command and its operands.
            function __diskcache_words
                set -l command
                set -l wanted 0
                set -l ended 0
                for word in (commandline -opc)[2..-1]
                    if test $wanted = 1
                        set wanted 0
                    else if test $ended = 1
                        echo -- $word
                    else if test "x$word" = x--
                        set ended 1
                    else if string match -q -- '-*' $word
                        if contains -- $word (__diskcache_valued $command)
                            set wanted 1
                        end
                    else
                        echo -- $word
                        # What follows its name is another program's.
                        if contains -- "$command" \(stopping)
                            set ended 1
                        end
                        test -n "$command"; or set command $word
                    end
                end
            end

            # Whether there are as many of these words as $argv[1], the first being $argv[2].
            function __diskcache_at
                set -l words (__diskcache_words)
                test (count $words) -eq $argv[1]; or return 1
                test $argv[1] -eq 0; or test "x$words[1]" = "x$argv[2]"
            end

            # Whether the command is $argv[1], with as many operands as $argv[2] or more.
            function __diskcache_in
                set -l words (__diskcache_words)
                test "x$words[1]" = "x$argv[1]"; and test (count $words) -gt $argv[2]
            end

            # Keys of the cache that begin like what is there.
            function __diskcache_keys
                set -l words (commandline -opc)
                set -l directory
                set -l previous
                for word in $words[2..-1]
                    if contains -- "$previous" -d --dir
                        set directory --dir $word
                    else if string match -q -- '--dir=*' $word
                        set directory $word
                    end
                    set previous $word
                end
                # Behind -- nothing is an option, before it a key that looks like one is not meant.
                if contains -- -- $words
                    $words[1] $directory complete-keys -- (commandline -ct | string collect) 2>/dev/null </dev/null
                else
                    set -l typed (commandline -ct | string replace -r -- '^--[a-z-]+=' '' | string collect)
                    $words[1] $directory complete-keys -- $typed 2>/dev/null </dev/null | string match -v -- '-*'
                end
            end

            complete -c diskcache -f
            \(lines.joined(separator: "\n"))

            """
    }

    private static func arm(_ name: String, _ options: [Option]) -> String {
        let valued = options.filter { $0.specification.argument == .required }.flatMap(\.spellings)
        let words = valued.joined(separator: " ")
        return "        case x\(name)\n            printf '%s\\n' \(words)"
    }

    private static func lines(_ command: CompletedCommand) -> [String] {
        let options = command.options.map { line($0, condition: "__diskcache_in \(command.name) 0") }
        let operands = command.operands.enumerated().compactMap { place, operand -> String? in
            let isOpen =
                operand == .command || command.repeatsLast && place == command.operands.count - 1
            let condition =
                isOpen
                ? "__diskcache_in \(command.name) \(place)" : "__diskcache_at \(place + 1) \(command.name)"
            return proposal(operand).map { "complete -c diskcache -n '\(condition)' \($0)" }
        }
        return options + operands
    }

    static func line(_ option: Option, condition: String) -> String {
        var words = ["complete -c diskcache -n '\(condition)'"]
        if let letter = option.specification.letter { words.append("-s \(letter)") }
        words.append("-l \(option.specification.name)")
        // Of values that may be left out fish knows nothing.
        if option.specification.argument == .required {
            words.append(proposal(option.completion).map { "-r \($0)" } ?? "-x")
        }
        words.append("-d \(quoted(option.help))")
        return words.joined(separator: " ")
    }

    /// nil: there is nothing to propose.
    private static func proposal(_ completion: Completion) -> String? {
        switch completion {
        case .nothing: nil
        case .files: "-F"
        case .directories: "-f -a '(__fish_complete_directories (commandline -ct))'"
        case .keys: "-f -a '(__diskcache_keys)'"
        case .command: "-f -a '(__fish_complete_subcommand --fcs-skip=2)'"
        case .words(let words): "-f -a '\(words.joined(separator: " "))'"
        }
    }

    private static func quoted(_ text: String) -> String {
        text.reduce(into: "'") { result, character in
            if #"\'"#.contains(character) { result += #"\"# }
            result.append(character)
        } + "'"
    }
}
