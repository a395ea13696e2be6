// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The options of the simulator's command line.
struct SimulatorOptions {
    /// An option that can't be understood.
    struct Invalid: Error, CustomStringConvertible {
        let description: String
    }

    private static let usage = """
        usage: Simulator [OPTIONS]

        Runs the cache in simulated processes, and checks its promises. A seed determines who runs when, who is killed,
        what fails, and what time it is.

          --seed N        the first seed; default: 1, with --seconds a random one
          --runs N        the number of seeds, from the first one on; default: 1
          --seconds N     runs seeds for this long
          --jobs N        the number of simulators that run at once; default: 1
          --profile NAME  what happens in a run; default: each profile in turn
          --first         stops at the first run that breaks a promise
          --trace         prints each step
          --mistake NAME  takes a safeguard away; includes --first
          --shrink        looks for the fewest operations with which the seed's profile breaks a promise
          --profiles      lists the profiles
          --mistakes      lists the safeguards
          --help          prints this text

        Exits with 1 if a run broke a promise.
        """

    var seed: UInt64 = 1
    var runs: UInt64?
    var seconds: Double?
    var jobs = 1
    var isTracing = false
    var stopsAtFirst = false
    var shrinks = false
    var mistake: Mistake?
    /// What to print instead of running anything.
    var answer: String?
    private(set) var profiles = Profile.all

    init(_ arguments: ArraySlice<String>) throws {
        var words = arguments
        var isSeeded = false
        func number(_ word: String) throws -> UInt64 {
            guard let number = words.popFirst().flatMap({ UInt64($0) }) else {
                throw Invalid(description: "\(word): give a number")
            }
            return number
        }
        while let word = words.popFirst() {
            switch word {
            case "--seed": (seed, isSeeded) = (try number(word), true)
            case "--runs": runs = try number(word)
            case "--seconds": seconds = Double(try number(word))
            case "--jobs": jobs = max(1, Int(try number(word)))
            case "--profile":
                let name = words.popFirst() ?? ""
                profiles = Profile.all.filter { $0.name == name }
                if profiles.isEmpty {
                    throw Invalid(description: "no profile \"\(name)\": --profiles lists them")
                }
            case "--mistake":
                let name = words.popFirst() ?? ""
                mistake = Mistake(rawValue: name)
                stopsAtFirst = true
                if mistake == nil {
                    throw Invalid(description: "no safeguard \"\(name)\": --mistakes lists them")
                }
            case "--first": stopsAtFirst = true
            case "--trace": isTracing = true
            case "--shrink": shrinks = true
            case "--profiles": answer = Profile.all.map(\.name).joined(separator: "\n")
            case "--mistakes": answer = Mistake.allCases.map(\.rawValue).joined(separator: "\n")
            case "--help": answer = Self.usage
            default: throw Invalid(description: "no option \(word): --help lists them")
            }
        }
        if seconds != nil, !isSeeded { seed = .random(in: 0...UInt64(Int32.max)) }
        if seconds == nil, runs == nil { runs = 1 }
    }

    func profile(of seed: UInt64) -> Profile { profiles[Int(seed % UInt64(profiles.count))] }

    /// The words for a simulator that runs a part of the seeds.
    func words(seed: UInt64, runs: UInt64) -> [String] {
        let profile = profiles.count == 1 ? ["--profile", profiles[0].name] : []
        let mistake = mistake.map { ["--mistake", $0.rawValue] } ?? []
        return ["--seed", "\(seed)", "--runs", "\(runs)"] + profile + mistake
            + (stopsAtFirst ? ["--first"] : [])
    }
}
