// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// The possible words for an operand or for an option's value.
struct Completion: Equatable {
    /// The placeholder in help texts, such as KEY or FILE.
    ///
    /// Only KEY, FILE, DIR and CMD (another program's command line) can be completed. All other placeholders stand for a
    /// number, a span or a text that only the user knows.
    var placeholder = ""
    /// The possible words; empty if any word is allowed.
    var choices: [String] = []
}

extension Option {
    /// The possible values.
    var completion: Completion { Completion(placeholder: placeholder ?? "", choices: choices) }

    /// The spellings of the option: "-t", "--ttl".
    var spellings: [String] {
        (specification.letter.map { ["-\($0)"] } ?? []) + ["--\(specification.name)"]
    }
}

extension Command {
    /// Returns the possible words for the operand at a position, counted from 0.
    ///
    /// For words after a program's name, as in "[--] CMD [ARG]…", the completion is that of the program.
    static func completion(ofOperand place: Int) -> Completion {
        var kinds = operandChoices.map { Completion(choices: $0) }
        if kinds.isEmpty {
            let words = operands.split(separator: " ").map { $0.filter { !"[]…".contains($0) } }
            kinds = words.filter { $0 != "--" && $0 != "ARG" }.map { Completion(placeholder: String($0)) }
        }
        if place < kinds.count { return kinds[place] }
        return operands.hasSuffix("…") ? kinds.last ?? Completion() : Completion()
    }
}

/// The response to a shell that requests completions of the last word of a command line.
struct Proposals {
    /// The completion that the shell adds to ``words``.
    ///
    /// One of `words` (nothing is added); `files` or `directories`, each followed by the number of characters before the
    /// name in the last word; and `command`, followed by the position of its name among the words.
    private(set) var kind = "words"
    /// The proposed words, one per line; a tab and an explanation may follow a word.
    private(set) var words: [String] = []
    /// The incomplete word.
    private let last: String

    /// An option that every command accepts, as a substitute for the last word.
    private static let probe = "--help"

    /// Creates the proposals for a command line.
    ///
    /// - Parameters:
    ///   - line: The words after the program's name; the last word is incomplete, and may be empty.
    ///   - commands: The subcommands.
    init(for line: [String], among commands: [any Command.Type]) {
        last = line.last ?? ""
        complete(line, commands)
    }

    private mutating func complete(_ line: [String], _ commands: [any Command.Type]) {
        // Scans the line as the command would, with an option in place of the last word; the result shows what kind of
        // word is possible there.
        var options = Overview.options
        let probed = Array(line.dropLast()) + [Self.probe]
        guard var scanned = Self.scan(probed, options, operandsBeforeCommand: 0) else { return }
        var arguments = Arguments(scanned, options: options, command: "", directory: nil)
        var command: (any Command.Type)?
        if let name = scanned.operands.first, scanned.operands.count > 1 {
            command = commands.first { $0.name == name }
            if name == "help", scanned.operands.count == 2 { add(commands.map { $0.name }) }
            guard let command else { return }
            options = command.options + Option.common
            let rest = Array(scanned.operands.dropFirst())
            let count = command.operandsBeforeCommand
            guard let found = Self.scan(rest, options, operandsBeforeCommand: count) else { return }
            scanned = found
            arguments = Arguments(found, options: options, command: name, directory: arguments.value("dir"))
        }
        let isEnded = scanned.operands.last == Self.probe
        if !isEnded, let wanted = scanned.options.last, wanted.value == Self.probe {
            return add(options[wanted.index].completion, arguments)
        }
        if !isEnded, last.hasPrefix("-") { return add(options, scanned, arguments) }
        guard let command else {
            for command in commands { add([command.name], command.summary) }
            return add(["help"], "show what a command does")
        }
        let place = scanned.operands.count - (isEnded ? 1 : 0)
        let completion = command.completion(ofOperand: place)
        if completion.placeholder == "CMD" {
            // Other operands may precede the program's name.
            let first = (0..<place).first { command.completion(ofOperand: $0) == completion } ?? place
            kind = "command \(line.count - 1 - (place - first))"
        }
        add(completion, arguments, afterEnd: isEnded)
    }

    /// Scans words; returns nil if they contain an error, so that no continuation would be valid.
    private static func scan(
        _ words: [String],
        _ options: [Option],
        operandsBeforeCommand: Int?
    ) -> ScannedOptions? {
        try? ScannedOptions(words, options, operandsBeforeCommand: operandsBeforeCommand)
    }

    /// Adds the options that the last word may become, or the values of an option if the last word begins with that
    /// option.
    private mutating func add(_ options: [Option], _ scanned: ScannedOptions, _ arguments: Arguments) {
        for option in options where option.placeholder != nil {
            for spelling in option.spellings {
                let lead = spelling.hasPrefix("--") ? spelling + "=" : spelling
                guard last.hasPrefix(lead), last != spelling else { continue }
                return add(option.completion, to: lead, arguments)
            }
        }
        let given = Set(scanned.options.dropLast().map(\.index))
        for (index, option) in options.enumerated() where option.isRepeatable || !given.contains(index) {
            add(option.spellings, option.help)
        }
    }

    /// Adds the elements of `words` that begin with the last word.
    private mutating func add(_ words: [String], _ help: String = "") {
        let found = words.filter { $0.utf8.starts(with: last.utf8) }
        self.words += help.isEmpty ? found : found.map { "\($0)\t\(help)" }
    }

    /// Adds the words of a completion.
    ///
    /// - Parameters:
    ///   - lead: The text before the value in the last word: "--key=".
    ///   - afterEnd: Whether words that begin with a dash are operands, because "--" precedes them.
    private mutating func add(
        _ completion: Completion,
        to lead: String = "",
        _ arguments: Arguments,
        afterEnd: Bool = true
    ) {
        add(completion.choices.map { lead + $0 })
        switch completion.choices.isEmpty ? completion.placeholder : "" {
        case "FILE": kind = "files \(lead.count)"
        case "DIR": kind = "directories \(lead.count)"
        case "KEY":
            let keys = KeyCandidates.keys(beginning: String(last.dropFirst(lead.count)), arguments)
            add(keys.filter { afterEnd || !$0.hasPrefix("-") }.map { lead + $0 })
        default: return
        }
    }
}

/// Proposed keys.
///
/// There are few enough for a screen, they are found fast enough for a keystroke, and none of them can control the
/// terminal or look like two keys.
enum KeyCandidates {
    /// The maximum number of keys; shells ask before they show that many (bash from 100 on).
    static let limit = 200

    /// The time limit, beyond which the shell would seem to hang; listing a cache of a million keys takes seconds.
    static let patience: Duration = .milliseconds(250)

    /// Returns keys of the cache that the command line names; none if it can't be read, because completion can't report
    /// errors.
    static func keys(beginning prefix: String, _ arguments: Arguments) -> [String] {
        let end = ContinuousClock.now + patience
        guard let scope = try? arguments.scope(),
            let entries = try? arguments.openExistingCache()?.entries()
        else { return [] }
        let names = entries.lazy.map { result -> String? in
            guard let key = (try? result.get())?.key else { return nil }
            return name(of: key, in: scope)
        }
        return keys(beginning: prefix, among: names) { .now >= end }
    }

    /// Returns the name that a command with this scope needs for a key; nil if the key is outside of the scope.
    static func name(of key: String, in scope: String) -> String? {
        if scope.isEmpty { return key }
        guard key.utf8.starts(with: scope.utf8), key.utf8.count > scope.utf8.count else { return nil }
        return String(decoding: key.utf8.dropFirst(scope.utf8.count), as: UTF8.self)
    }

    /// Returns the elements of `keys` that begin with `prefix` and need no escaping on a line, sorted.
    static func keys(
        beginning prefix: String,
        among keys: some Sequence<String?>,
        isLate: () -> Bool
    ) -> [String] {
        var found: [String] = []
        for key in keys {
            if let key, key.utf8.starts(with: prefix.utf8), key == key.singleLine { found.append(key) }
            if found.count == limit || isLate() { break }
        }
        return found.sorted()
    }
}
