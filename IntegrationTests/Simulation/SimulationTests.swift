// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Runs of the product's own code in simulated processes: `Simulator`, see TESTING.md.
@Suite(.takesTurns, .enabled(if: try isSimulated, "a sanitizer leaves nothing to simulate"))
struct SimulationTests {
    private func simulate(_ arguments: String...) throws -> (output: String, status: Int32) {
        try BuiltCommand.run(BuiltCommand.simulator, arguments)
    }

    /// Two simulators share the runs, one of each profile.
    @Test func `the cache keeps its promises in runs of fresh seeds`() throws {
        let seed = UInt64.random(in: 0...UInt64(Int32.max))
        let runs = try simulate("--profiles").output.split(separator: "\n").count
        let (output, status) = try simulate("--seed", "\(seed)", "--runs", "\(runs)", "--jobs", "2")
        #expect(status == 0, "seed \(seed): \(output)")
        #expect(output.contains("\n\(runs) runs, "))
    }

    /// In a few profiles chosen at random, and in all of them in long runs.
    @Test func `a seed determines each step of a run, in each profile`() throws {
        let profiles = try simulate("--profiles").output.split(separator: "\n").map(String.init)
        try #require(profiles.contains("plain"))
        for profile in sample(4, of: profiles) {
            let seed = "\(UInt64.random(in: 0...UInt64(Int32.max)))"
            let first = try simulate("--seed", seed, "--profile", profile, "--trace")
            let second = try simulate("--seed", seed, "--profile", profile, "--trace")
            #expect(first.output.utf8.count > 100_000, "each step is printed")
            #expect(first.output == second.output, "seed \(seed), profile \(profile)")
        }
    }

    /// The simulator needs more runs to notice that the others are missing: see `Mistake`.
    @Test(arguments: [
        ("generations", "plain"), ("checksums", "plain"), ("flight-locks", "flights"),
        ("touches", "collections"),
    ])
    func `the simulator notices that a safeguard is missing`(mistake: String, profile: String) throws {
        let (output, status) = try simulate("--mistake", mistake, "--profile", profile, "--runs", "3000")
        #expect(status == 1, "\(output)")
        #expect(output.contains(": 1 with violations"))
    }

    @Test func `a failing run is reduced to the operations that it needs`() throws {
        let (output, status) = try simulate("--mistake", "checksums", "--profile", "plain", "--shrink")
        #expect(status == 1, "\(output)")
        // One put is enough, because the value is read again after the run.
        let programs = output.split(separator: "\n").filter { $0.hasPrefix("process ") }
        #expect(
            programs.count == 1 && programs.allSatisfy { $0.contains("put") && !$0.contains(";") },
            "\(output)"
        )
    }

    @Test func `all schedules of two short programs with one change between them keep the promises`() throws {
        let (output, status) = try simulate("--walk", "get,get", "put", "--jobs", "2")
        #expect(status == 0, "\(output)")
        let runs = output.prefix { $0 != " " }
        #if DEBUG
            let least = 50
        #else
            // Without the accesses to mapped words, which are points only if `SIMULATED` is defined.
            let least = 20
        #endif
        #expect(Int(runs) ?? 0 > least, "each call is a point: \(output)")
    }

    @Test func `a walk finds a missing safeguard and prints the schedule`() throws {
        let words = ["--walk", "get,get", "put", "--mistake", "generations"]
        let (output, status) = try BuiltCommand.run(BuiltCommand.simulator, words)
        #expect(status == 1 && output.contains("not linearizable"), "\(output)")
        let schedule = try #require(output.split(separator: " ").first { $0.hasPrefix("change:") }).dropLast()
        let replay = words + ["--schedule", String(schedule), "--trace"]
        let repeated = try BuiltCommand.run(BuiltCommand.simulator, replay)
        #expect(repeated.status == 1 && repeated.output.contains("VIOLATION"), "\(schedule)")
    }

    @Test(arguments: [
        ["--nonsense"], ["--seed"], ["--profile", "none"], ["--mistake", "none"], ["--walk", "get"],
        ["--walk", "get", "fly"], ["--schedule", "kill:1"], ["--walk", "get", "put", "--schedule", "kill"],
    ])
    func `an option that can't be understood is an error`(words: [String]) throws {
        let (output, status) = try BuiltCommand.run(BuiltCommand.simulator, words)
        #expect(status == 64 && output.isEmpty)
    }
}

/// Whether the simulator can run.
private var isSimulated: Bool {
    get throws { try BuiltCommand.run(BuiltCommand.simulator, ["--runs", "0"]).status != 69 }
}
