// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import diskcache

/// What the shells' scripts are made from, and which keys are proposed.
@Suite(.takesTurns) struct CompletionTests {
    static func candidates(_ prefix: String, _ keys: [String?], isLate: () -> Bool = { false }) -> [String] {
        KeyCandidatesCommand.candidates(beginning: prefix, among: keys, isLate: isLate)
    }

    @Test func `keys that begin like it come in order`() {
        #expect(Self.candidates("a", ["ab", "b", nil, "aa", "a"]) == ["a", "aa", "ab"])
        #expect(Self.candidates("", ["b", "a"]) == ["a", "b"])
    }

    @Test func `keys are compared as bytes`() {
        // One letter, in two ways of writing it.
        #expect(Self.candidates("e", ["e\u{301}"]) == ["e\u{301}"])
        #expect(Self.candidates("\u{E9}", ["e\u{301}"]).isEmpty)
    }

    @Test(arguments: ["a\nb", "a\tb", "a\u{1B}[2J", "a\u{7F}", "a\u{9B}", "a\u{202E}"])
    func `a key that would act on a terminal, or be two lines, is left out`(key: String) {
        #expect(Self.candidates("a", [key, "a\\b"]) == ["a\\b"])
    }

    @Test func `there are no more than fit a screen`() {
        let keys = (0..<1000).map { "k\($0)" }
        #expect(Self.candidates("k", keys).count == KeyCandidatesCommand.limit)
    }

    @Test func `the search ends when it is late, also where nothing was found`() {
        var looks = 0
        let found = Self.candidates("x", Array(repeating: "y", count: 1000)) {
            looks += 1
            return looks == 3
        }
        #expect(found.isEmpty && looks == 3)
    }

    @Test func `what an operand can be is read off its name`() {
        #expect(CompletedCommand(PutCommand.self).operands == [.keys, .files])
        #expect(CompletedCommand(RemoveCommand.self).operands == [.keys])
        #expect(CompletedCommand(RemoveCommand.self).repeatsLast)
        #expect(CompletedCommand(RunCommand.self).operands == [.command])
        #expect(CompletedCommand(RunCommand.self).stopsAtOperand)
        #expect(CompletedCommand(CompletionsCommand.self).operands == [.words(["bash", "zsh", "fish"])])
        #expect(CompletedCommand(ListCommand.self).operands.isEmpty)
    }

    @Test func `what a value can be is read off what stands for it, or off its choices`() {
        #expect(Option("a", nil, "FILE", help: "").completion == .files)
        #expect(Option("a", nil, "DIR", help: "").completion == .directories)
        #expect(Option("a", nil, "KEY", help: "").completion == .keys)
        #expect(Option("a", nil, "SPAN", help: "").completion == .nothing)
        #expect(Option("a", nil, "FILE", choices: ["x"], help: "").completion == .words(["x"]))
        #expect(Option("a", help: "").completion == .nothing)
    }

    @Test func `hidden commands are not proposed`() {
        let names = CompletedCommand.all.map(\.name)
        #expect(names.contains("put") && names.last == "help")
        for hidden in DiskCacheTool.commands where hidden.isHidden { #expect(!names.contains(hidden.name)) }
    }

    @Test func `no word needs quoting in any shell`() {
        let words = CompletedCommand.all.flatMap { command in
            [command.name] + command.operands.flatMap(\.words)
                + command.options.flatMap { [$0.specification.name] + $0.choices }
        }
        #expect(words.count > 100)
        #expect(
            words.allSatisfy { $0.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") } }
        )
    }

    @Test func `an option that can be repeated says so, and is proposed again`() {
        let option = Option("tag", nil, "TAG", isRepeatable: true, help: "a word")
        #expect(option.help == "a word; can be repeated")
        #expect(ZshCompletion.specifications(option) == ["'*--tag=[a word; can be repeated]:TAG: '"])
    }

    @Test func `help texts are quoted for each shell`() {
        let option = Option("x", "x", "A:B", help: #"it's [a] \ "`b`": c"#)
        #expect(
            ZshCompletion.specifications(option).last
                == #"'(-x --x)--x=[it'\''s \[a\] \\ "`b`"\: c]:A\:B: '"#
        )
        #expect(
            FishCompletion.line(option, condition: "true").hasSuffix(
                #"-s x -l x -x -d 'it\'s [a] \\ "`b`": c'"#
            )
        )
    }
}

extension Completion {
    fileprivate var words: [String] {
        guard case .words(let words) = self else { return [] }
        return words
    }
}
