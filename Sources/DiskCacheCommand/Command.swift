// SPDX-License-Identifier: Apache-2.0

import Platform

/// A subcommand.
protocol Command: Sendable {
    static var name: String { get }
    /// The operands in the usage line: "KEY [FILE]".
    static var operands: String { get }
    /// The allowed number of operands; by default derived from ``operands``.
    static var operandCount: ClosedRange<Int> { get }
    /// The words that can be given for each operand, by position.
    ///
    /// Empty if ``operands`` only has names such as KEY or FILE.
    static var operandChoices: [[String]] { get }
    /// The command's line in the overview.
    static var summary: String { get }
    /// Paragraphs of the command's help, such as exit statuses and examples.
    static var details: String { get }
    /// The command's options, one per line, in the format of ``Option/init(_:)``; ``Option/common`` is added.
    static var optionList: String { get }
    /// Groups of mutually exclusive options.
    static var exclusive: [[String]] { get }
    static func run(_ arguments: Arguments) throws -> ExitStatus
}

extension Command {
    static var operands: String { "" }
    static var operandChoices: [[String]] { [] }
    static var details: String { "" }
    static var optionList: String { "" }
    static var options: [Option] { optionList.split(separator: "\n").map { Option($0) } }
    static var exclusive: [[String]] { [] }
    /// The number of operands before another program's command line, which "[--]" marks; nil if there is none.
    static var operandsBeforeCommand: Int? { operands.split(separator: " ").firstIndex(of: "[--]") }

    static var operandCount: ClosedRange<Int> {
        let words = operands.split(separator: " ").filter { $0 != "[--]" }
        return words.count { !$0.hasPrefix("[") }...(operands.hasSuffix("…") ? .max : words.count)
    }

    /// Parses the command line; prints the help or runs the command.
    ///
    /// - Parameter body: Runs the command; nil to call ``run(_:)``.
    static func main(
        _ words: [[UInt8]],
        directory: String?,
        reaching network: (any Network)?,
        body: ((Arguments) throws -> ExitStatus)?
    ) throws -> ExitStatus {
        var arguments = try parse(words, directory: directory)
        arguments.network = network
        if arguments.has("help") {
            try Output.print(help)
            return .done
        }
        try check(&arguments)
        let status = try (body ?? run)(arguments)
        network?.finish()
        return status
    }

    static func parse(_ words: [[UInt8]], directory: String?) throws(Failure) -> Arguments {
        try Arguments(
            words,
            options + Option.common,
            command: name,
            directory: directory,
            operandsBeforeCommand: operandsBeforeCommand
        )
    }

    /// Throws if options exclude each other, or if the number of operands is wrong.
    static func check(_ arguments: inout Arguments) throws(Failure) {
        for group in exclusive {
            let given = group.filter(arguments.has)
            if given.count > 1 {
                throw .usage("\(name): --\(given[0]) and --\(given[1]) can't be used together: give one")
            }
        }
        // A command without operands can only mean the option's value, so the "=" may be omitted.
        if operands.isEmpty, let option = options.first(where: { $0.specification.argument == .optional }) {
            arguments = arguments.takingOperand(for: option.specification.name)
        }
        var usage = operands.isEmpty ? "none" : operands
        let valueless = options.first {
            $0.specification.argument == .optional && arguments.value($0.specification.name) == ""
        }
        if let valueless, arguments.operands.count > operandCount.upperBound {
            // The user probably meant the extra operand as the option's value.
            usage += ", and the value of --\(valueless.specification.name) after ="
        }
        try arguments.expectOperands(operandCount, usage)
    }

    /// The text that `--help` prints.
    static var help: String {
        let words = ["Usage: diskcache", name, "[OPTION]…", operands].filter { !$0.isEmpty }
        var text = words.joined(separator: " ") + "\n\n\(summary).\n"
        if !details.isEmpty { text += "\n\(details)\n" }
        return text + "\nOptions:\n" + (options + Option.common).map(\.line).joined()
    }
}

extension OptionError {
    /// Returns one line that describes the error; `options` are the command's options.
    func words(_ options: [Option]) -> String {
        switch self {
        case .unknown(let word):
            // getopt reports unknown and ambiguous options with the same error; the candidates distinguish them.
            let start = word.prefix { $0 != "=" }
            let candidates = options.map { "--\($0.specification.name)" }.filter { $0.hasPrefix(start) }
            guard start.hasPrefix("--"), candidates.count > 1 else {
                let names = options.map { "--\($0.specification.name)" }
                // Most likely the user meant a negative number.
                let isDigit = word.count == 2 && word.last.map { $0.isASCII && $0.isNumber } == true
                if isDigit { return "unknown option '\(word)' (put -- before a word that is not an option)" }
                return "unknown option '\(word)'" + Suggestion.words(for: String(start), among: names)
            }
            return "ambiguous option '\(start)': it can be \(candidates.joined(separator: ", "))"
        case .missingValue(let word): return "option '\(word)' needs a value"
        case .unexpectedValue(let word): return "option '\(word)' takes no value"
        }
    }
}
