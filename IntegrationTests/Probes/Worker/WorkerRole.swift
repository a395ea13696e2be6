// SPDX-License-Identifier: Apache-2.0

/// What a worker does with the cache.
package enum WorkerRole: String, CaseIterable, Sendable {
    /// Reads the same keys again and again, so that its memory tier stays warm.
    case reader
    /// Overwrites and removes values, and reads values of all workers.
    case writer
    /// Makes all calls that take locks: writes, including those in the background, and single-flight computations.
    case flights
    /// Collects garbage, and evicts some entries each time.
    case collector
    /// Reads, and keeps each value for a millisecond without validation; the check of coherence must detect that.
    case forgetful
    /// Adds 1 to a number, again and again.
    case counter
    /// Puts a value under each key once, if the key has no value.
    case claimant

    /// The number of threads of a worker with this role.
    package var threads: Int {
        switch self {
        case .collector, .counter, .claimant: 1
        case .flights: 4
        case .reader, .writer, .forgetful: 2
        }
    }

    /// The percentage of operations that are not gets.
    var writeShare: Int {
        switch self {
        case .reader, .forgetful, .collector, .counter, .claimant: 0
        case .writer: 20
        case .flights: 60
        }
    }
}

/// The instructions for a worker, which its command line contains.
package struct WorkerOrder: Sendable {
    /// The directory of the cache.
    package var directory: String
    /// The directory for the logs.
    package var logs: String
    /// The number of the process, which is unique.
    package var number: Int
    package var role: WorkerRole
    package var seed: UInt64
    /// Whether the worker validates values in memory by comparing the generations of their keys.
    package var checksGenerations = true

    package init(directory: String, logs: String, number: Int, role: WorkerRole, seed: UInt64) {
        self.directory = directory
        self.logs = logs
        self.number = number
        self.role = role
        self.seed = seed
    }

    /// Parses command-line arguments in the form of ``arguments``.
    package init?(_ arguments: [String]) {
        guard arguments.count == 6, let number = Int(arguments[2]),
            let role = WorkerRole(rawValue: arguments[3]), let seed = UInt64(arguments[4])
        else { return nil }
        self.init(directory: arguments[0], logs: arguments[1], number: number, role: role, seed: seed)
        checksGenerations = arguments[5] == "checked"
    }

    package var arguments: [String] {
        [directory, logs, "\(number)", role.rawValue, "\(seed)", checksGenerations ? "checked" : "unchecked"]
    }

    /// Returns the path of a thread's log.
    package func log(ofThread thread: Int) -> String {
        "\(logs)/\(number)-\(thread)"
    }
}
