// SPDX-License-Identifier: Apache-2.0

/// Runs two short programs with all schedules that have at most a number of interventions.
///
/// Most faults need few changes between processes: Musuvathi and Qadeer, *Iterative Context Bounding for Systematic Testing
/// of Multithreaded Programs* (PLDI 2007). A process that waits or ends is replaced by the other one; this is no
/// intervention.
struct ScheduleWalk {
    /// What both processes do, each with the same key.
    let programs: [[OperationKind]]
    /// Whether the key has no value before.
    var isAbsent = false
    /// The most interventions of a schedule.
    let bound: Int
    /// Whether an intervention may also kill the running process.
    var kills = false
    var mistake: Mistake?

    private static let key = "key 0"

    /// Returns the result of one schedule.
    func run(_ interventions: [Profile.Intervention], isTracing: Bool = false) -> Outcome {
        var profile = Profile(name: "given")
        profile.schedule = .given(interventions)
        profile.keys = 1
        // Value 1 has the same bytes as the value that is there.
        let programs = programs.enumerated().map { number, kinds in
            kinds.map { operation($0, UInt64(1 + number)) }
        }
        let simulation = Simulation(
            seed: 1,
            profile: profile,
            before: isAbsent ? [] : [operation(.put, 1)],
            programs: programs,
            mistake: mistake
        )
        return simulation.run(isTracing: isTracing)
    }

    private func operation(_ kind: OperationKind, _ value: UInt64) -> Operation {
        Operation(kind: kind, key: Self.key, value: value, length: 3000, timeToLive: nil, delay: 0)
    }

    /// Runs all schedules that begin with `interventions`, and passes each result to `visit` until it returns false.
    ///
    /// Returns whether all were run.
    @discardableResult
    func walk(
        from interventions: [Profile.Intervention] = [],
        _ visit: ([Profile.Intervention], Outcome) -> Bool
    ) -> Bool {
        let outcome = run(interventions)
        guard visit(interventions, outcome) else { return false }
        guard interventions.count < bound else { return true }
        let last = interventions.last?.point ?? 0
        for point in stride(from: last + 1, through: outcome.points, by: 1) {
            for kind in Profile.Intervention.Kind.allCases where kind == .change || kills {
                let next = interventions + [Profile.Intervention(point: point, kind: kind)]
                guard walk(from: next, visit) else { return false }
            }
        }
        return true
    }
}
