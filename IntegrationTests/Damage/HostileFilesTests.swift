// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests with anything in place of any file of a cache directory: no crash, hang, wrong byte or undocumented exit status.
///
/// By default a few kinds are tried at each place, chosen so that all places, kinds, calls and commands occur; with
/// `DISKCACHE_SOAK=1` all combinations are tried. Both print the outcomes.
@Suite(.takesTurns) struct HostileFilesTests {
    private let place: TemporaryDirectory
    private let template: String

    init() throws {
        place = try TemporaryDirectory()
        template = place.path + "/template"
        let script = """
            set -e; export DISKCACHE_DIR=\(template); tool=\(Tool.path)
            $tool config set event-log 64K; $tool config set max-size 1G
            printf value | $tool put --tag tag key; printf 'other value' | $tool put other
            printf x | $tool put gone; $tool rm gone; $tool gc; $tool gc --max-entries 100
            $tool put --tag old old </dev/null; $tool rm --tag old
            """
        try #require(try BuiltCommand.run("/bin/bash", ["-c", script]).status == 0)
        try HostileTemplate(directory: template).complete()
    }

    /// Returns the cases to try: all of them, or every `step`-th kind and `count` contents.
    ///
    /// The step divides no number of kinds, so that every place and every kind has its turn. Neighbouring contents are
    /// alike, so the files take turns, each with another part of its contents than the file before, and with others in each
    /// round.
    private func choice(kinds step: Int, contents count: Int) -> [Int] {
        let all = HostileCase.all
        if isSoak { return Array(all.indices) }
        let kinds = all.indices.filter { !all[$0].isContent }.enumerated()
            .filter { $0.offset.isMultiple(of: step) }.map(\.element)
        let files = Dictionary(grouping: all.indices.filter { all[$0].isContent }) { all[$0].place }
            .values.sorted { $0[0] < $1[0] }
        return kinds
            + (0..<count).map { turn in
                let (round, place) = turn.quotientAndRemainder(dividingBy: files.count)
                let own = files[place]
                return own[(place * 11 + round * 3) % own.count]
            }
    }

    @Test func `the chosen cases include contents of every file`() {
        let all = HostileCase.all
        for count in [20, 26] {
            let chosen = choice(kinds: 5, contents: count).map { all[$0] }.filter(\.isContent)
            #expect(Set(chosen.map(\.place)) == Set(all.filter(\.isContent).map(\.place)))
            #expect(isSoak || Set(chosen.map(\.name)).count == count)
        }
    }

    // MARK: Calls

    /// The outcomes of calls, in order.
    private struct Outcome {
        var number: Int
        var opensFirst: Bool
        var calls: [(name: String, end: String?)] = []
        /// The exit status of a process that died in the middle, or nil.
        var death: Int32?

        var name: String {
            (number < 0 ? HostileCase.none : HostileCase.all[number]).name
                + (opensFirst ? " (while open)" : "")
        }
    }

    /// Runs the probe, and restarts it after each death with the case after the fatal one.
    private func probe(_ numbers: [Int], isAlternating: Bool = false) throws -> [Outcome] {
        var outcomes: [Outcome] = []
        var rest = numbers[...]
        while !rest.isEmpty {
            let scratch = "\(place.path)/\(UUID().uuidString)"
            try FileManager.default.createDirectory(atPath: scratch, withIntermediateDirectories: false)
            // Few enough that the time limit only ends a process that hangs.
            let part = rest.prefix(100)
            let words =
                ["-s", "KILL", "600", BuiltCommand.probes, "hostile", template, scratch]
                + part.map { number in
                    isAlternating ? "\(number)/\(number.isMultiple(of: 2) ? "open" : "closed")" : "\(number)"
                }
            let run = try BuiltCommand.run("/usr/bin/timeout", words)
            outcomes += parse(run.output)
            guard run.status != 0, let last = outcomes.indices.last else {
                rest = rest.dropFirst(part.count)
                continue
            }
            outcomes[last].death = run.status
            rest = rest[(rest.firstIndex(of: outcomes[last].number) ?? rest.endIndex)...].dropFirst()
        }
        return outcomes
    }

    private func parse(_ output: String) -> [Outcome] {
        var outcomes: [Outcome] = []
        for line in output.split(separator: "\n") {
            let words = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            switch words.first {
            case "case": outcomes.append(Outcome(number: Int(words[1]) ?? -1, opensFirst: words[2] == "true"))
            case "call": outcomes[outcomes.count - 1].calls.append((words[1], nil))
            case "end":
                let last = outcomes.count - 1
                outcomes[last].calls[outcomes[last].calls.count - 1].end = words[1]
            default: continue
            }
        }
        return outcomes
    }

    @Test func `no call of the library crashes, hangs or returns a wrong byte`() throws {
        let sound = try probe([-1])
        #expect(sound.count == 2 && sound.allSatisfy { $0.death == nil })
        var expected: [Bool: [String]] = [:]
        for outcome in sound {
            expected[outcome.opensFirst] = outcome.calls.map { "\($0.name)=\($0.end ?? "")" }
        }
        #expect(try #require(expected[false]).contains("get=right"))

        let choice = choice(kinds: 5, contents: 20)
        let outcomes = try probe(choice, isAlternating: !isSoak)
        var table = ""
        for outcome in outcomes {
            let calls = outcome.calls.map { "\($0.name)=\($0.end ?? "DIED")" }
            // Only the differences from an intact cache.
            let usual = Set(expected[outcome.opensFirst] ?? [])
            let unusual = calls.filter { !usual.contains($0) }
            table +=
                "\(outcome.name): \(unusual.isEmpty ? "as if nothing were" : unusual.joined(separator: " "))\n"
            #expect(outcome.death == nil, "\(outcome.name): \(calls.last ?? "at once")")
            #expect(
                !calls.contains { $0.contains("WRONG") || $0.contains("UNTYPED") },
                "\(outcome.name): \(calls)"
            )
            // A caller that computes gets a value, whatever is wrong.
            let values = outcome.calls.filter { $0.name == "value" && $0.end != nil }
            #expect(values.allSatisfy { $0.end == "right" }, "\(outcome.name): \(calls)")
        }
        #expect(outcomes.count >= choice.count)
        print(table)
    }

    // MARK: Commands

    private static let commands = [
        "doctor", "stats", "get key", "put key", "stats --prometheus", "gc --last", "verify", "ls -l",
        "info key",
        "gc --dry-run", "gc", "log", "rm key", "touch key", "config", "stats --json", "config set max-age 9d",
        "clear --yes",
        "run -- echo value", "put other", "doctor --json", "gc --json --last", "ls --json", "incr number",
        "lock name --wait 0 -- true", "serve", "has key", "rm --prefix oth",
        "touch --soft --tag tag",
    ]

    /// The documented exit statuses, without 64 for invalid arguments and 70 for internal errors.
    private static let statuses: Set<Int32> = [0, 1, 65, 73, 74, 75, 77, 78]

    @Test func `no command crashes, hangs, returns a wrong byte or exits with an undocumented status`()
        throws
    {
        var table = ""
        for (turn, number) in choice(kinds: 5, contents: 26).enumerated() {
            let hostile = HostileCase.all[number]
            let directory = place.path + "/case"
            try #require(
                try BuiltCommand.run(
                    "/bin/bash",
                    ["-c", "for s in '' .outside .outside.d; do cp -a \(template)$s \(directory)$s; done"]
                ).status == 0
            )
            try hostile.apply(in: directory)
            // The commands that report problems always run, and one of the others.
            let others = Self.commands.dropFirst(2)
            let chosen =
                isSoak
                ? Self.commands : ["doctor", "stats", others[others.startIndex + turn % others.count]]
            let statuses = try run(chosen, in: directory)
            table += "\(hostile.name):"
            for (command, (status, output)) in zip(chosen, statuses) {
                if status != 0 { table += " \(command)=\(status)" }
                #expect(Self.statuses.contains(status), "\(hostile.name): \(command): \(status)")
                if command == "get key", status == 0 { #expect(output == "value", "\(hostile.name)") }
                if command.hasPrefix("run"), status == 0 { #expect(output == "value\n", "\(hostile.name)") }
            }
            table += "\n"
            let outside = try String(contentsOfFile: directory + ".outside", encoding: .utf8)
            #expect(outside == "outside", "\(hostile.name)")
            let names = try FileManager.default.contentsOfDirectory(atPath: directory + ".outside.d")
            #expect(names.isEmpty, "\(hostile.name)")
            #expect(
                try BuiltCommand.run(
                    "/bin/rm",
                    ["-rf", directory, directory + ".outside", directory + ".outside.d"]
                ).status == 0
            )
        }
        print(table)
    }

    /// Runs commands one after the other, and returns their statuses and outputs; 137 is the status of a command that hung
    /// and was killed.
    private func run(_ commands: [String], in directory: String) throws -> [(Int32, String)] {
        let lines = commands.map { command in
            "printf value | timeout -s KILL 120 \(Tool.path) \(command) 2>/dev/null; printf '\\036%d\\036' $?"
        }
        let script =
            "export SWIFT_BACKTRACE=enable=no DISKCACHE_DIR=\(directory); " + lines.joined(separator: "\n")
        let run = try BuiltCommand.run("/bin/bash", ["-c", script])
        let parts = run.output.components(separatedBy: "\u{1e}")
        return stride(from: 0, to: parts.count - 1, by: 2).map { (Int32(parts[$0 + 1]) ?? -1, parts[$0]) }
    }

    @Test func `doctor names a file of the wrong type`() throws {
        let names = HostileCase.all.enumerated().filter {
            $0.element.kind == "FIFO" && $0.element.place != "format"
        }
        for (_, hostile) in names
        where ["locks/janitor", "control", "entries/xx", "events"].contains(hostile.place) {
            let directory = place.path + "/named"
            try #require(try BuiltCommand.run("/bin/cp", ["-a", template, directory]).status == 0)
            try hostile.apply(in: directory)
            let run = try BuiltCommand.run(Tool.path, ["doctor", "--dir", directory])
            let name = hostile.place == "entries/xx" ? "entries/2c" : hostile.place
            // The control file is recreated before the check.
            let isNamed = run.output.contains("wrong type (link, pipe, directory, …): \(name)")
            #expect(isNamed != (hostile.place == "control"), "\(hostile.name): \(run.output)")
            #expect(run.status == (hostile.place == "control" ? 0 : 78), "\(hostile.name): \(run.output)")
            try FileManager.default.removeItem(atPath: directory)
        }
    }
}
