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
          --walk A B      runs all schedules of two programs, such as put,get and remove,get, that have at most --bound
                          changes between the processes
          --absent        lets the walk's key have no value at the beginning
          --bound N       the most changes and kills of a schedule; default: 1
          --kills         lets a schedule also kill a process
          --schedule LIST runs one schedule of a walk, such as change:12,kill:40
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
    /// The programs of a walk, if one is to be run.
    var walk: ScheduleWalk?
    /// The schedule of the walk to begin with.
    var schedule: [Profile.Intervention]?
    /// What to print instead of running anything.
    var answer: String?
    private(set) var profiles = Profile.all

    init(_ arguments: ArraySlice<String>) throws {
        var words = arguments
        var isSeeded = false
        var programs: [[OperationKind]] = []
        var (bound, kills, isAbsent) = (1, false, false)
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
            case "--walk": programs = try (0..<2).map { _ in try Self.program(words.popFirst() ?? "") }
            case "--bound": bound = Int(try number(word))
            case "--kills": kills = true
            case "--absent": isAbsent = true
            case "--schedule": schedule = try Self.schedule(words.popFirst() ?? "")
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
        if !programs.isEmpty {
            walk = ScheduleWalk(
                programs: programs,
                isAbsent: isAbsent,
                bound: bound,
                kills: kills,
                mistake: mistake
            )
        } else if schedule != nil {
            throw Invalid(description: "--schedule needs --walk")
        }
    }

    private static func program(_ word: String) throws -> [OperationKind] {
        if word.isEmpty {
            throw Invalid(description: "--walk: give two programs, such as put,get and remove,get")
        }
        return try word.split(separator: ",").map { name in
            guard let kind = OperationKind(rawValue: String(name)) else {
                let names = OperationKind.allCases.map(\.rawValue).joined(separator: ", ")
                throw Invalid(description: "no operation \"\(name)\": there are \(names)")
            }
            return kind
        }
    }

    private static func schedule(_ word: String) throws -> [Profile.Intervention] {
        try word.split(separator: ",").map { text in
            let parts = text.split(separator: ":")
            guard parts.count == 2, let kind = Profile.Intervention.Kind(rawValue: String(parts[0])),
                let point = Int(parts[1])
            else { throw Invalid(description: "\"\(text)\" is no intervention such as change:12 or kill:40") }
            return Profile.Intervention(point: point, kind: kind)
        }
    }

    func profile(of seed: UInt64) -> Profile { profiles[Int(seed % UInt64(profiles.count))] }

    /// The words for a simulator that runs a part of the seeds.
    func words(seed: UInt64, runs: UInt64) -> [String] {
        let profile = profiles.count == 1 ? ["--profile", profiles[0].name] : []
        return ["--seed", "\(seed)", "--runs", "\(runs)"] + profile + mistakeWords
            + (stopsAtFirst ? ["--first"] : [])
    }

    /// The words for a simulator that runs the schedules of the walk which begin with these interventions.
    func words(_ walk: ScheduleWalk, from schedule: [Profile.Intervention]) -> [String] {
        let programs = walk.programs.map { $0.map(\.rawValue).joined(separator: ",") }
        return ["--walk"] + programs + ["--bound", "\(walk.bound)"] + (walk.kills ? ["--kills"] : [])
            + (walk.isAbsent ? ["--absent"] : [])
            + ["--schedule", schedule.map(\.description).joined(separator: ",")] + mistakeWords
            + (stopsAtFirst ? ["--first"] : [])
    }

    private var mistakeWords: [String] { mistake.map { ["--mistake", $0.rawValue] } ?? [] }
}
