// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a shell proposes in the place of a value or an operand.
enum Completion: Equatable {
    /// A number, a span, a text: whatever the user has in mind.
    case nothing
    case files
    case directories
    /// Keys of the cache, as ``KeyCandidatesCommand`` lists them.
    case keys
    /// A command line of another program.
    case command
    /// One of a fixed set.
    case words([String])

    /// By what stands for it in the help: "KEY", "FILE".
    init(placeholder: some StringProtocol) {
        self =
            switch placeholder {
            case "KEY": .keys
            case "FILE": .files
            case "DIR": .directories
            case "CMD": .command
            default: .nothing
            }
    }
}

extension Option {
    /// What its value can be.
    var completion: Completion {
        if !choices.isEmpty { return .words(choices) }
        return placeholder.map { Completion(placeholder: $0) } ?? .nothing
    }

    /// "-t", "--ttl".
    var spellings: [String] {
        (specification.letter.map { ["-\($0)"] } ?? []) + ["--\(specification.name)"]
    }
}

/// What a completion has to know of a command, all of it from the command's own tables.
struct CompletedCommand {
    let name: String
    let summary: String
    let options: [Option]
    /// By place.
    let operands: [Completion]
    /// Whether as many of the last operand may follow as there are.
    let repeatsLast: Bool
    /// Whether the first operand ends the options.
    let stopsAtOperand: Bool

    init(_ command: any Command.Type) {
        name = command.name
        summary = command.summary
        options = command.options + Option.common
        stopsAtOperand = command.stopsAtOperand
        operands =
            command.operandChoices.isEmpty
            ? Self.kinds(command.operands) : command.operandChoices.map { .words($0) }
        repeatsLast = command.operands.hasSuffix("…")
    }

    /// "KEY [FILE]", "[--] CMD [ARG]…": what follows a program's name is that program's.
    private static func kinds(_ operands: String) -> [Completion] {
        let words = operands.split(separator: " ").map { $0.filter { !"[]…".contains($0) } }
        return words.filter { $0 != "--" && $0 != "ARG" }.map { Completion(placeholder: $0) }
    }

    /// `diskcache help`, which is no command of its own.
    private init(helpOn names: [String]) {
        name = "help"
        summary = "say what a command does"
        options = []
        operands = [.words(names)]
        (repeatsLast, stopsAtOperand) = (false, false)
    }

    /// All that are shown to people, in the order of the overview.
    static var all: [CompletedCommand] {
        let shown = DiskCacheTool.commands.filter { !$0.isHidden }.map { CompletedCommand($0) }
        return shown + [CompletedCommand(helpOn: shown.map(\.name))]
    }
}
