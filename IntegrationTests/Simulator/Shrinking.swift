// SPDX-License-Identifier: Apache-2.0

/// Looks for the fewest operations with which a profile still breaks a promise.
///
/// A removed operation changes all later steps, so each smaller set is tried with many schedules.
struct Shrinking {
    let seed: UInt64
    let profile: Profile
    let mistake: Mistake?
    /// The schedules that are tried for each set of operations.
    private let schedules: UInt64 = 50

    /// Returns the smallest programs and the result of their run; nil if the seed breaks no promise.
    func smallest() -> (programs: [[Operation]], outcome: Outcome)? {
        var programs = Simulation.programs(seed: seed, profile)
        guard var outcome = failure(programs) else { return nil }
        // Whole processes first, then halves, then single operations.
        var length = programs.map(\.count).max() ?? 0
        while length > 0 {
            for number in programs.indices.reversed() {
                var start = 0
                while start < programs[number].count {
                    var smaller = programs
                    smaller[number].removeSubrange(start..<min(start + length, programs[number].count))
                    if let next = failure(smaller) {
                        programs = smaller
                        outcome = next
                    } else {
                        start += length
                    }
                }
            }
            length /= 2
        }
        return (programs, outcome)
    }

    private func failure(_ programs: [[Operation]]) -> Outcome? {
        // Not tried: it takes as many runs, and a failure that needs no operation is as clear with one.
        if programs.allSatisfy(\.isEmpty) { return nil }
        for schedule in 0..<schedules {
            let simulation = Simulation(
                seed: seed &+ schedule,
                profile: profile,
                programs: programs,
                mistake: mistake
            )
            let outcome = simulation.run()
            if !outcome.violations.isEmpty { return outcome }
        }
        return nil
    }
}
