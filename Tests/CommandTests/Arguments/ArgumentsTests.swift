// SPDX-License-Identifier: Apache-2.0

import DiskCache
import TestSupport
import Testing

@testable import DiskCacheCommand
@testable import Platform

@Suite(.takesTurns) struct ArgumentsTests {
    static let options = [
        Option("-t, --ttl SPAN"), Option("--tag TAG"), Option("--json"), Option("-d, --dir DIR"),
        Option("--scope TEXT"), Option("--prefix TEXT…"), Option("--glob PATTERN…"),
    ]

    /// Arguments as if the scanner had found these options and operands.
    static func arguments(
        _ found: [(String, String?)] = [],
        operands: [String] = [],
        directory: String? = nil
    ) -> Arguments {
        var scanned = ScannedOptions()
        scanned.operands = operands
        scanned.options = found.map { name, value in
            ScannedOptions.Found(
                index: options.firstIndex { $0.specification.name == name } ?? 0,
                value: value
            )
        }
        return Arguments(scanned, options: options, command: "test", directory: directory)
    }

    @Test func `an option is present only if it was given`() {
        let arguments = Self.arguments([("json", nil)])
        #expect(arguments.has("json"))
        #expect(!arguments.has("ttl"))
    }

    @Test func `the last of several values of an option counts`() {
        #expect(Self.arguments([("ttl", "1"), ("ttl", "2")]).value("ttl") == "2")
    }

    @Test func `the values of a repeatable option keep their order`() {
        #expect(Self.arguments([("tag", "b"), ("tag", "a")]).all("tag") == ["b", "a"])
    }

    @Test func `the error for a value that does not parse names the option`() {
        #expect {
            try Self.arguments([("ttl", "soon")]).value("ttl", as: Quantity.duration)
        } throws: {
            ($0 as? Failure)?.message.hasPrefix("test: --ttl: invalid time span 'soon'") ?? false
        }
    }

    @Test(arguments: [0, 3])
    func `a wrong number of operands is refused`(count: Int) {
        let arguments = Self.arguments(operands: Array(repeating: "x", count: count))
        #expect { try arguments.expectOperands(1...2, "KEY [FILE]") } throws: {
            ($0 as? Failure)?.status == .usage
        }
    }

    @Test func `the number of operands is derived from their names`() {
        #expect(HasCommand.operandCount == 1...1 && PutCommand.operandCount == 1...2)
        #expect(ListCommand.operandCount == 0...0 && LogCommand.operandCount == 0...1)
        #expect(RemoveCommand.operandCount == 0...Int.max && RunCommand.operandCount == 1...Int.max)
    }

    @Test func `a single operand becomes the value of an option that was given without a value`() throws {
        func arguments(_ value: String?, _ operands: String...) -> Arguments {
            Self.arguments(value.map { [("ttl", $0)] } ?? [], operands: operands).takingOperand(for: "ttl")
        }
        #expect(arguments("", "5s").value("ttl") == "5s" && arguments("", "5s").operands.isEmpty)
        #expect(arguments("1s", "5s").value("ttl") == "1s" && arguments("1s", "5s").operands == ["5s"])
        #expect(arguments("", "5s", "x").operands == ["5s", "x"])
        #expect(arguments(nil, "5s").value("ttl") == nil && arguments(nil, "5s").operands == ["5s"])
    }

    @Test func `an empty key is refused`() {
        #expect(throws: Failure.self) { try Self.arguments(operands: [""]).key() }
    }

    @Test func `a scope is prefixed to every key, but is no key without an operand`() throws {
        let arguments = Self.arguments([("scope", "a/")], operands: ["k"])
        #expect(try arguments.key() == "a/k" && arguments.key("l") == "a/l")
        #expect(try Self.arguments([("scope", "")], operands: ["k"]).key() == "k")
        #expect(throws: Failure.self) { try Self.arguments([("scope", "a/")], operands: [""]).key() }
    }

    @Test func `keys are selected by prefix, glob or tag, and all keys without such an option`() throws {
        #expect(try SelectionOptions.selection(Self.arguments()) == .all)
        for (option, selection) in [
            ("prefix", .prefix("x")), ("glob", .glob("x")), ("tag", .tagged("x")),
        ] as [(String, KeySelection)] {
            #expect(try SelectionOptions.selection(Self.arguments([(option, "x")])) == selection)
            #expect { try SelectionOptions.selection(Self.arguments([(option, "")])) } throws: {
                ($0 as? Failure)?.message.hasPrefix("test: --\(option): the ") ?? false
            }
            let several = Self.arguments([(option, "x"), (option, "y")])
            #expect { try SelectionOptions.selection(several) } throws: {
                ($0 as? Failure)?.message.hasPrefix("test: --\(option) was given several times") ?? false
            }
        }
        #expect(throws: Failure.self) {
            try SelectionOptions.prefix(Self.arguments([("prefix", "x"), ("prefix", "y")]))
        }
        let all = try SelectionOptions.selections(
            Self.arguments([("tag", "t"), ("prefix", "b"), ("prefix", "a"), ("prefix", "b")])
        )
        #expect(all == [.prefix("b"), .prefix("a"), .tagged("t")])
    }

    @Test func `the command's directory option takes precedence over the global one`() throws {
        #expect(try Self.arguments([("dir", "/a")], directory: "/b").directory() == "/a")
        #expect(try Self.arguments(directory: "/b").directory() == "/b")
    }

    @Test(arguments: [("a/", "a"), ("/a/b//", "/a/b"), ("/", "/"), ("//", "/"), ("a", "a")])
    func `trailing slashes of the directory are removed`(given: String, directory: String) throws {
        #expect(try Self.arguments(directory: given).directory() == directory)
    }

    @Test func `an empty directory is refused`() {
        #expect(throws: Failure.self) { try Self.arguments(directory: "").directory() }
    }
}

/// The request that `gc` makes of its options.
@Suite(.takesTurns) struct CollectCommandTests {
    /// The request for these words, parsed without getopt, whose state is global.
    static func request(_ words: String...) throws -> CollectionOptions {
        try request(words)
    }

    static func request(_ words: [String]) throws -> CollectionOptions {
        var scanned = ScannedOptions()
        var rest = words[...]
        while let word = rest.popFirst() {
            let index = try #require(
                CollectCommand.options.firstIndex { "--" + $0.specification.name == word }
            )
            let takesValue = CollectCommand.options[index].placeholder != nil
            scanned.options.append(
                ScannedOptions.Found(index: index, value: takesValue ? rest.popFirst() : nil)
            )
        }
        var arguments = Arguments(scanned, options: CollectCommand.options, command: "gc", directory: nil)
        try CollectCommand.check(&arguments)
        return try CollectCommand.request(arguments)
    }

    @Test(arguments: ["--max-size", "--max-entries", "--max-age", "--max-idle"])
    func `a limit together with expired-only is refused`(limit: String) {
        #expect { try Self.request("--expired-only", limit, "1") } throws: {
            ($0 as? Failure)?.status == .usage
        }
    }

    @Test func `last cannot be combined with the options of a collection`() {
        for words in [["--last", "--nice"], ["--last", "--watch", "1s"], ["--last", "--max-size", "1"]] {
            #expect { try Self.request(words) } throws: {
                ($0 as? Failure)?.message
                    == "gc: \(words[0]) and \(words[1]) can't be used together: give one"
            }
        }
    }

    @Test func `every option is reflected in the request`() throws {
        let request = try Self.request(
            "--max-size",
            "2G",
            "--max-entries",
            "7",
            "--max-age",
            "1d",
            "--max-idle",
            "1h",
            "--prefix",
            "a/",
            "--dry-run",
            "--no-wait"
        )
        #expect(request.selection == .prefix("a/"))
        #expect(request.maximumSize == .gibibytes(2))
        #expect(request.maximumEntries == 7)
        #expect(request.maximumAge == .seconds(86400))
        #expect(request.maximumIdleTime == .seconds(3600))
        #expect(request.isDryRun)
        #expect(request.patience == .zero)
    }

    @Test func `a request without options has no limits`() throws {
        let request = try Self.request()
        #expect(request.maximumSize == nil && request.maximumEntries == nil)
        #expect(request.maximumAge == nil && request.maximumIdleTime == nil)
        #expect(!request.isDryRun && !request.expiredOnly && request.patience > .zero)
    }
}
