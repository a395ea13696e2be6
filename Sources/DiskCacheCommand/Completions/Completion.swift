// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// What can stand in the place of an operand or of an option's value.
struct Completion: Equatable {
    /// What stands for it in the help, such as KEY or FILE.
    ///
    /// Only KEY, FILE, DIR and CMD (the command line of another program) can be completed; anything else is a number, a
    /// span or a text that only the user knows.
    var placeholder = ""
    /// One of these; empty: anything.
    var choices: [String] = []
}

extension Option {
    /// What its value can be.
    var completion: Completion { Completion(placeholder: placeholder ?? "", choices: choices) }

    /// "-t", "--ttl".
    var spellings: [String] {
        (specification.letter.map { ["-\($0)"] } ?? []) + ["--\(specification.name)"]
    }
}

extension Command {
    /// What the operand at a place can be, counted from 0.
    ///
    /// What follows a program's name, as in "[--] CMD [ARG]…", is that program's affair.
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

/// The answer to a shell that asks how the last word of a command line could go on.
struct Proposals {
    /// What the shell finds out by itself, besides ``words``: `files`, `directories`, each with how many characters
    /// stand before the name in the last word; `command`, with the place of its name among the words; or `words`.
    private(set) var kind = "words"
    /// A line each: a word as a whole, and behind a tab what it means.
    private(set) var words: [String] = []
    /// The word under way.
    private let last: String

    /// What is typed in the place of an option: any command understands it.
    private static let probe = "--help"

    /// - Parameter line: the words after the program's name; the last is under way, and may be empty.
    init(for line: [String]) {
        last = line.last ?? ""
        complete(line)
    }

    private mutating func complete(_ line: [String]) {
        // Scanned as the command itself would, with an option in the place of the last word: what becomes of it
        // says what can stand there.
        var options = DiskCacheTool.options
        let probed = Array(line.dropLast()) + [Self.probe]
        guard var scanned = Self.scan(probed, options, operandsBeforeCommand: 0) else { return }
        var arguments = Arguments(scanned, options: options, command: "", directory: nil)
        var command: (any Command.Type)?
        if let name = scanned.operands.first, scanned.operands.count > 1 {
            command = DiskCacheTool.shown.first { $0.name == name }
            if name == "help", scanned.operands.count == 2 { add(DiskCacheTool.shown.map { $0.name }) }
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
            for shown in DiskCacheTool.shown { add([shown.name], shown.summary) }
            return add(["help"], "show what a command does")
        }
        let place = scanned.operands.count - (isEnded ? 1 : 0)
        let completion = command.completion(ofOperand: place)
        if completion.placeholder == "CMD" {
            // Other operands may stand before its name.
            let first = (0..<place).first { command.completion(ofOperand: $0) == completion } ?? place
            kind = "command \(line.count - 1 - (place - first))"
        }
        add(completion, arguments, afterEnd: isEnded)
    }

    /// nil: what is wrong already can't go on.
    private static func scan(
        _ words: [String],
        _ options: [Option],
        operandsBeforeCommand: Int?
    ) -> ScannedOptions? {
        try? ScannedOptions(words, options, operandsBeforeCommand: operandsBeforeCommand)
    }

    /// The options that the last word may become, or the values of one that it has begun.
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

    /// Those of `words` that begin like the last word.
    private mutating func add(_ words: [String], _ help: String = "") {
        let found = words.filter { $0.utf8.starts(with: last.utf8) }
        self.words += help.isEmpty ? found : found.map { "\($0)\t\(help)" }
    }

    /// - Parameters:
    ///   - lead: what stands before the value in the last word: "--key=".
    ///   - afterEnd: whether what begins with a dash is no option.
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

/// Keys that are proposed: few enough for a screen, soon enough for a keystroke, and none that could speak to the
/// terminal or be taken for two.
enum KeyCandidates {
    /// More than a shell shows without asking (bash asks from 100 on).
    static let limit = 200

    /// After that a keystroke seems to hang; a cache of a million keys takes seconds to list.
    static let patience: Duration = .milliseconds(250)

    /// Those of the cache on the command line; none where it can't be read, which is no place to complain.
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

    /// What a command with this scope calls a key; nil if it can't mean it.
    static func name(of key: String, in scope: String) -> String? {
        if scope.isEmpty { return key }
        guard key.utf8.starts(with: scope.utf8), key.utf8.count > scope.utf8.count else { return nil }
        return String(decoding: key.utf8.dropFirst(scope.utf8.count), as: UTF8.self)
    }

    /// Those of `keys` that begin with `prefix` and can stand on a line as they are, in order.
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
