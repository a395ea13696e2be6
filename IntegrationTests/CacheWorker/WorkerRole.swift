// SPDX-License-Identifier: Apache-2.0

/// What a worker does with the cache.
package enum WorkerRole: String, CaseIterable, Sendable {
    /// Reads the same keys over and over, so that its memory tier stays warm.
    case reader
    /// Overwrites, removes, and reads what it and others wrote.
    case writer
    /// Everything that takes a lock: writes, also in the background, and values that are computed once across
    /// all processes.
    case flights
    /// Collects garbage, evicting some entries each time.
    case collector
    /// A reader that keeps what it has read for a millisecond without asking anybody: what the check of
    /// coherence must find out.
    case forgetful
    /// Adds 1 to a number, over and over.
    case counter
    /// Puts a value under each key that has none, once.
    case claimant

    /// Threads that a worker of this role works with.
    package var threads: Int {
        switch self {
        case .collector, .counter, .claimant: 1
        case .flights: 4
        case .reader, .writer, .forgetful: 2
        }
    }

    /// How many in a hundred operations are no gets.
    var writeShare: Int {
        switch self {
        case .reader, .forgetful, .collector, .counter, .claimant: 0
        case .writer: 20
        case .flights: 60
        }
    }
}

/// What a worker is told on its command line.
package struct WorkerOrder: Sendable {
    /// Of the cache.
    package var directory: String
    /// Of the logs.
    package var logs: String
    /// One of its own for each process.
    package var number: Int
    package var role: WorkerRole
    package var seed: UInt64
    /// Whether values in memory are held against the generations of their keys.
    package var checksGenerations = true

    package init(directory: String, logs: String, number: Int, role: WorkerRole, seed: UInt64) {
        self.directory = directory
        self.logs = logs
        self.number = number
        self.role = role
        self.seed = seed
    }

    /// Reads what ``arguments`` gives.
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

    /// The log of one of its threads.
    package func log(ofThread thread: Int) -> String {
        "\(logs)/\(number)-\(thread)"
    }
}
