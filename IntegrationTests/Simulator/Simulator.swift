// SPDX-License-Identifier: Apache-2.0

import CSimulator
import Foundation

/// Runs the product under simulated schedules, kills and faults.
@main enum Simulator {
    nonisolated static func main() {
        let options: SimulatorOptions
        do {
            options = try SimulatorOptions(CommandLine.arguments.dropFirst())
        } catch {
            FileHandle.standardError.write(Data("Simulator: \(error)\n".utf8))
            exit(64)
        }
        if let text = options.answer { return print(text) }
        guard simulator_is_available() else {
            FileHandle.standardError.write(Data("Simulator: build it without a sanitizer\n".utf8))
            exit(69)
        }
        let isAlone =
            if options.walk != nil {
                options.schedule != nil || options.isTracing
            } else {
                options.isTracing || options.shrinks
                    || options.jobs == 1 && options.runs ?? .max <= Batches.size
            }
        beDeterministic()
        World.takeCalls()
        Simulation.warmUp()
        if let walk = options.walk {
            exit(isAlone ? run(walk, options) : runAll(walk, options))
        }
        exit(!isAlone ? runAll(options) : options.shrinks ? shrink(options) : run(options))
    }

    /// Runs the seeds in other simulators; returns the exit status.
    nonisolated private static func runAll(_ options: SimulatorOptions) -> Int32 {
        let end = options.seconds.map { Date() + $0 }
        let last = options.runs.map { options.seed + $0 } ?? .max
        var seed = options.seed
        print("seeds from \(seed) on")
        let batches = Batches(jobs: options.jobs, stopsAtFirst: options.stopsAtFirst)
        let isRight = batches.run {
            guard seed < last, end.map({ Date() < $0 }) ?? true else { return nil }
            let share = options.runs.map { max(1, $0 / UInt64(options.jobs)) } ?? Batches.size
            let runs = min(Batches.size, share, last - seed)
            defer { seed += runs }
            return options.words(seed: seed, runs: runs)
        }
        return isRight ? 0 : 1
    }

    /// Runs all schedules of a walk in other simulators, by their first intervention; returns the exit status.
    nonisolated private static func runAll(_ walk: ScheduleWalk, _ options: SimulatorOptions) -> Int32 {
        let first = walk.run([])
        guard first.violations.isEmpty, walk.bound > 0 else {
            print(first)
            return first.violations.isEmpty ? 0 : 1
        }
        var starts = (1...max(1, first.points)).flatMap { point in
            Profile.Intervention.Kind.allCases.compactMap { kind in
                kind == .change || walk.kills ? Profile.Intervention(point: point, kind: kind) : nil
            }
        }[...]
        let batches = Batches(jobs: options.jobs, stopsAtFirst: options.stopsAtFirst)
        return batches.run { starts.popFirst().map { options.words(walk, from: [$0]) } } ? 0 : 1
    }

    /// Runs the schedules of a walk that begin with the given one, or that one alone if it is traced.
    nonisolated private static func run(_ walk: ScheduleWalk, _ options: SimulatorOptions) -> Int32 {
        var totals = Totals()
        let schedule = options.schedule ?? []
        func add(_ outcome: Outcome, _ schedule: [Profile.Intervention]) {
            totals.add(outcome)
            if outcome.violations.isEmpty { return }
            print("schedule \(schedule.map(\.description).joined(separator: ",")): \(outcome)")
        }
        if options.isTracing {
            add(walk.run(schedule, isTracing: true), schedule)
        } else {
            walk.walk(from: schedule) { schedule, outcome in
                add(outcome, schedule)
                return !options.stopsAtFirst || totals.red == 0
            }
        }
        print(totals)
        return totals.red == 0 ? 0 : 1
    }

    /// Starts this program anew with a fixed order of dictionaries, unless it has one.
    nonisolated private static func beDeterministic() {
        guard getenv("SWIFT_DETERMINISTIC_HASHING") == nil else { return }
        setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
        // A process of the simulation that fails an assertion ends the program at once, and not after a second of symbols.
        setenv("SWIFT_BACKTRACE", "enable=no", 0)
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", &arguments)
        fatalError("the simulator can't start itself anew: errno \(errno)")
    }

    /// Runs the seeds in this process; returns the exit status.
    nonisolated private static func run(_ options: SimulatorOptions) -> Int32 {
        var totals = Totals()
        for seed in options.seed..<options.seed + (options.runs ?? 1) {
            let profile = options.profile(of: seed)
            if options.runs ?? 1 > 1, isatty(STDERR_FILENO) == 1 {
                FileHandle.standardError.write(Data("seed \(seed)\r".utf8))
            }
            let simulation = Simulation(seed: seed, profile: profile, mistake: options.mistake)
            let outcome = simulation.run(isTracing: options.isTracing)
            totals.add(outcome)
            if options.runs ?? 1 == 1 || !outcome.violations.isEmpty { print(outcome) }
            if totals.red > 0, options.stopsAtFirst { break }
        }
        print(totals)
        return totals.red == 0 ? 0 : 1
    }

    nonisolated private static func shrink(_ options: SimulatorOptions) -> Int32 {
        let profile = options.profile(of: options.seed)
        let shrinking = Shrinking(seed: options.seed, profile: profile, mistake: options.mistake)
        guard let smallest = shrinking.smallest() else {
            print("seed \(options.seed), \(profile.name): no violation")
            return 0
        }
        print(smallest.outcome)
        for (number, program) in smallest.programs.enumerated() where !program.isEmpty {
            print("process \(101 + number): \(program.map(\.description).joined(separator: "; "))")
        }
        return 1
    }
}

/// The sums over all runs.
struct Totals: CustomStringConvertible {
    var runs = 0
    var operations = 0
    var steps = 0
    var kills = 0
    /// The runs that broke a promise.
    var red = 0

    init() {}

    mutating func add(_ outcome: Outcome) {
        runs += 1
        operations += outcome.operations
        steps += outcome.steps
        kills += outcome.kills
        if !outcome.violations.isEmpty { red += 1 }
    }

    /// Adds the sums that another simulator has printed as its last line; returns false if these are none.
    mutating func add(line: Substring) -> Bool {
        let numbers = line.split { !$0.isNumber }.compactMap { Int($0) }
        guard numbers.count == 5, line.contains(" runs, ") else { return false }
        runs += numbers[0]
        operations += numbers[1]
        steps += numbers[2]
        kills += numbers[3]
        red += numbers[4]
        return true
    }

    var description: String {
        "\(runs) runs, \(operations) operations, \(steps) steps, \(kills) kills: \(red) with violations"
    }
}
