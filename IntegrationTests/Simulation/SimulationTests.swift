// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Runs of the product's own code in simulated processes: `Simulator`, see TESTING.md.
@Suite(.takesTurns) struct SimulationTests {
    private func simulate(_ arguments: String...) throws -> (output: String, status: Int32) {
        try BuiltCommand.run(BuiltCommand.simulator, arguments)
    }

    @Test func `the cache keeps its promises in runs of fresh seeds`() throws {
        let seed = UInt64.random(in: 0...UInt64(Int32.max))
        let (output, status) = try simulate("--seed", "\(seed)", "--runs", "120")
        #expect(status == 0, "seed \(seed): \(output)")
        #expect(output.contains("120 runs, "))
    }

    private static let profiles: [String] = {
        let output = try? BuiltCommand.run(BuiltCommand.simulator, ["--profiles"]).output
        return (output ?? "").split(separator: "\n").map(String.init)
    }()

    @Test(arguments: profiles) func `a seed determines each step of a run`(profile: String) throws {
        let seed = "\(UInt64.random(in: 0...UInt64(Int32.max)))"
        let first = try simulate("--seed", seed, "--profile", profile, "--trace")
        let second = try simulate("--seed", seed, "--profile", profile, "--trace")
        #expect(first.output.utf8.count > 100_000, "each step is printed")
        #expect(first.output == second.output, "seed \(seed)")
    }

    /// The other safeguards take longer to be missed: `simulate --mistake NAME --runs 100000` finds them, too.
    @Test(arguments: [
        ("generations", "plain"), ("checksums", "plain"), ("flight-locks", "flights"),
        ("touches", "collections"),
    ])
    func `a safeguard that is taken away is missed`(mistake: String, profile: String) throws {
        let (output, status) = try simulate("--mistake", mistake, "--profile", profile, "--runs", "3000")
        #expect(status == 1, "\(output)")
        #expect(output.contains(": 1 with violations"))
    }

    @Test func `a run that breaks a promise is made smaller`() throws {
        let (output, status) = try simulate("--mistake", "checksums", "--profile", "plain", "--shrink")
        #expect(status == 1, "\(output)")
        // One put suffices: what it leaves is read after the run.
        let programs = output.split(separator: "\n").filter { $0.hasPrefix("process ") }
        #expect(
            programs.count == 1 && programs.allSatisfy { $0.contains("put") && !$0.contains(";") },
            "\(output)"
        )
    }

    @Test(arguments: [["--nonsense"], ["--seed"], ["--profile", "none"], ["--mistake", "none"]])
    func `an option that can't be understood is an error`(words: [String]) throws {
        let (output, status) = try BuiltCommand.run(BuiltCommand.simulator, words)
        #expect(status == 64 && output.isEmpty)
    }
}
