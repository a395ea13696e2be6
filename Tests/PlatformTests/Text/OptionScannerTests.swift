// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

/// Serialized, because getopt keeps its state in globals.
@Suite(.serialized, .takesTurns)
struct OptionScannerTests {
    static let options = [
        OptionSpecification(name: "all", letter: "a", argument: .none),
        OptionSpecification(name: "brief", letter: "b", argument: .none),
        OptionSpecification(name: "output", letter: "o", argument: .required),
        OptionSpecification(name: "older-than", letter: nil, argument: .required),
        OptionSpecification(name: "keep", letter: "k", argument: .optional),
    ]

    /// Returns the options as "name" or "name=value", and then the operands.
    static func scan(_ words: [String], stopsAtOperand: Bool = false) throws(OptionError) -> [[String]] {
        let scanned = try OptionScanner.scan(words, options, stopsAtOperand: stopsAtOperand)
        let found = scanned.options.map { option in
            options[option.index].name + (option.value.map { "=" + $0 } ?? "")
        }
        return [found, scanned.operands]
    }

    @Test(arguments: [
        (["-a"], ["all"]), (["--all"], ["all"]), (["-ab"], ["all", "brief"]), (["-o", "f"], ["output=f"]),
        (["-of"], ["output=f"]), (["-abof"], ["all", "brief", "output=f"]),
        (["--output", "f"], ["output=f"]),
        (["--output=f"], ["output=f"]), (["--output="], ["output="]), (["--out=f"], ["output=f"]),
        (["--older-than", "-1"], ["older-than=-1"]), (["-o", "--all"], ["output=--all"]),
        (["-o", "a", "-o", "b"], ["output=a", "output=b"]),
    ])
    func `options are parsed in every form`(words: [String], found: [String]) throws {
        #expect(try Self.scan(words) == [found, []])
    }

    @Test func `an optional value must be attached`() throws {
        #expect(try Self.scan(["--keep=5", "x"]) == [["keep=5"], ["x"]])
        #expect(try Self.scan(["--keep", "5"]) == [["keep"], ["5"]])
        #expect(try Self.scan(["-k5", "-k", "5"]) == [["keep=5", "keep"], ["5"]])
    }

    @Test func `operands keep their order between options`() throws {
        #expect(try Self.scan(["x", "-a", "y", "-o", "f", "z"]) == [["all", "output=f"], ["x", "y", "z"]])
    }

    @Test func `two dashes end the options`() throws {
        #expect(try Self.scan(["-a", "--", "-b", "--all"]) == [["all"], ["-b", "--all"]])
    }

    @Test func `one dash is an operand`() throws {
        #expect(try Self.scan(["-", "-a"]) == [["all"], ["-"]])
    }

    @Test func `empty words are operands`() throws {
        #expect(try Self.scan(["", "-a"]) == [["all"], [""]])
    }

    @Test func `no words give no options and no operands`() throws {
        #expect(try Self.scan([]) == [[], []])
    }

    @Test func `the first operand can end the options`() throws {
        #expect(try Self.scan(["-a", "run", "-b"], stopsAtOperand: true) == [["all"], ["run", "-b"]])
    }

    @Test(arguments: [
        (["--nothing"], OptionError.unknown("--nothing")), (["-x"], .unknown("-x")),
        (["-ax"], .unknown("-x")),
        (["--o=f"], .unknown("--o=f")), (["-o"], .missingValue("-o")),
        (["--output"], .missingValue("--output")), (["-ao"], .missingValue("-o")),
        (["--all=1"], .unexpectedValue("--all")),
    ])
    func `an invalid option is named in the error`(words: [String], error: OptionError) {
        #expect(throws: error) { try Self.scan(words) }
    }

    @Test func `a failed scan does not affect the next`() throws {
        _ = try? Self.scan(["-ax", "rest"])
        #expect(try Self.scan(["-b", "x"]) == [["brief"], ["x"]])
    }
}
