// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheCommand

/// The answers to the shells, and the keys that are proposed.
@Suite(.takesTurns) struct CompletionTests {
    static func candidates(_ prefix: String, _ keys: [String?], isLate: () -> Bool = { false }) -> [String] {
        KeyCandidates.keys(beginning: prefix, among: keys, isLate: isLate)
    }

    @Test func `keys with the prefix are proposed in order`() {
        #expect(Self.candidates("a", ["ab", "b", nil, "aa", "a"]) == ["a", "aa", "ab"])
        #expect(Self.candidates("", ["b", "a"]) == ["a", "b"])
    }

    @Test func `keys are compared as bytes`() {
        // The same letter, composed and decomposed.
        #expect(Self.candidates("e", ["e\u{301}"]) == ["e\u{301}"])
        #expect(Self.candidates("\u{E9}", ["e\u{301}"]).isEmpty)
    }

    @Test func `a key is proposed without the scope`() {
        #expect(KeyCandidates.name(of: "a/k", in: "") == "a/k")
        #expect(KeyCandidates.name(of: "a/k", in: "a/") == "k")
        #expect(KeyCandidates.name(of: "a/", in: "a/") == nil)
        #expect(KeyCandidates.name(of: "b/k", in: "a/") == nil)
        // A combining mark that belongs to the letter before it.
        #expect(KeyCandidates.name(of: "e\u{301}", in: "e") == "\u{301}")
    }

    @Test(arguments: ["a\nb", "a\tb", "a\u{1B}[2J", "a\u{7F}", "a\u{9B}", "a\u{202E}"])
    func `a key with control characters or line breaks is omitted`(key: String) {
        #expect(Self.candidates("a", [key, "a\\b"]) == ["a\\b"])
    }

    @Test func `the number of proposed keys is limited`() {
        let keys = (0..<1000).map { "k\($0)" }
        #expect(Self.candidates("k", keys).count == KeyCandidates.limit)
    }

    @Test func `the search ends when it is late, even without a match`() {
        var looks = 0
        let found = Self.candidates("x", Array(repeating: "y", count: 1000)) {
            looks += 1
            return looks == 3
        }
        #expect(found.isEmpty && looks == 3)
    }

    @Test func `the completion of an operand is derived from its name`() {
        #expect(PutCommand.completion(ofOperand: 0) == Completion(placeholder: "KEY"))
        #expect(PutCommand.completion(ofOperand: 1) == Completion(placeholder: "FILE"))
        #expect(PutCommand.completion(ofOperand: 2) == Completion())
        #expect(RemoveCommand.completion(ofOperand: 9) == Completion(placeholder: "KEY"))
        #expect(RunCommand.completion(ofOperand: 0) == Completion(placeholder: "CMD"))
        #expect(RunCommand.completion(ofOperand: 3) == Completion(placeholder: "CMD"))
        #expect(LockCommand.completion(ofOperand: 0) == Completion(placeholder: "NAME"))
        #expect(LockCommand.completion(ofOperand: 1) == Completion(placeholder: "CMD"))
        #expect(CompletionsCommand.completion(ofOperand: 0).choices == ["bash", "zsh", "fish"])
        #expect(ListCommand.completion(ofOperand: 0) == Completion())
    }

    @Test func `the completion of a value is derived from its placeholder or its choices`() {
        #expect(Option("--a FILE").completion == Completion(placeholder: "FILE"))
        #expect(Option("--a DIR").completion == Completion(placeholder: "DIR"))
        #expect(Option("--a NAME=KEY…").completion == Completion(placeholder: "NAME=KEY"))
        #expect(Option("--a[=SPAN]").completion == Completion(placeholder: "SPAN"))
        #expect(Option("--a FILE{x, y}").completion == Completion(placeholder: "FILE", choices: ["x", "y"]))
        #expect(Option("--a").completion == Completion())
    }

    static func words(_ line: String...) -> [String] {
        Proposals(for: line, among: DiskCacheTool.shown).words.map { String($0.prefix { $0 != "\t" }) }
    }

    @Test func `hidden commands are not proposed`() {
        let names = Self.words("")
        #expect(names.contains("put") && names.last == "help")
        for hidden in DiskCacheTool.hidden { #expect(!names.contains(hidden.name)) }
    }

    @Test func `options and values are proposed only in valid positions`() {
        #expect(Self.words("ls", "--so") == ["--sort"])
        #expect(Self.words("ls", "--", "--so").isEmpty)
        #expect(Self.words("ls", "-ln", "").isEmpty, "a number")
        #expect(Self.words("ls", "--sort", "s") == ["size"])
        #expect(Self.words("ls", "--sort=s") == ["--sort=size"])
        #expect(Self.words("ls", "--so", "s") == ["size"], "as getopt reads it")
        #expect(Self.words("ls", "--nonsense", "--so").isEmpty)
        #expect(Self.words("help", "verif") == ["verify"])
        #expect(Self.words("help", "verify", "").isEmpty)
    }

    @Test func `modes and settings are proposed`() {
        #expect(Self.words("fetch", "--mode", "re") == ["revalidate", "reload"])
        #expect(Self.words("fetch", "--mode=off") == ["--mode=offline"])
        let names = ["remote.mode", "remote.minimumSize", "remote.maximumSize"]
        #expect(Self.words("config", "set", "remote.m") == names)
    }

    @Test func `an option that can't be repeated is proposed once`() {
        #expect(Self.words("put", "--tag", "a", "--ta") == ["--tag"])
        #expect(Self.words("put", "--stale", "1h", "--sta").isEmpty)
    }

    @Test func `files, directories and commands are left to the shell`() {
        func kind(_ line: String...) -> String { Proposals(for: line, among: DiskCacheTool.shown).kind }
        #expect(kind("put", "k", "/t") == "files 0" && kind("put", "k", "f", "") == "words")
        #expect(kind("get", "-o/t") == "files 2" && kind("get", "--output=/t") == "files 9")
        #expect(kind("-d", "") == "directories 0" && kind("ls", "--dir=") == "directories 6")
        #expect(kind("run", "--ttl", "1", "--", "l") == "command 4")
        #expect(kind("lock", "n", "--", "l") == "command 3")
        #expect(kind("lock", "n", "-w", "1", "--", "ls", "-l", "x") == "command 5")
        #expect(kind("lock", "n", "echo", "--he") == "command 2")
        #expect(kind("run", "ls", "--he") == "command 1" && kind("--dir=/", "run", "ls", "") == "command 2")
    }

    @Test func `no word needs quoting in any shell`() {
        let words = DiskCacheTool.shown.flatMap { command in
            [command.name] + command.operandChoices.joined()
                + command.options.flatMap { [$0.specification.name] + $0.choices }
        }
        #expect(words.count > 100)
        #expect(
            words.allSatisfy { word in
                word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0)) }
            }
        )
    }

    @Test func `an option is parsed from its help line`() {
        let option = Option("-w, --watch[=SPAN]  every SPAN")
        #expect(option.specification.letter == "w" && option.specification.name == "watch")
        #expect(option.specification.argument == .optional && option.placeholder == "SPAN")
        #expect(option.help == "every SPAN" && !option.isRepeatable)
        #expect(Option("-0, --null").spellings == ["-0", "--null"])
    }

    @Test func `the help of a repeatable option says so`() {
        #expect(Option("--tag TAG…  a word").help == "a word; can be repeated")
    }
}
