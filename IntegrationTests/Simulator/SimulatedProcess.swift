// SPDX-License-Identifier: Apache-2.0

import CSimulator
import Dispatch
import Glibc
import TestSupport

/// A process of the simulation: a thread with its own descriptors, mappings and random numbers.
///
/// Only the process that runs uses it, and the scheduler between two turns.
final class SimulatedProcess: @unchecked Sendable {
    enum State {
        case ready
        /// Sleeps, or is stopped, until the given time.
        case waiting(until: Int64)
        case ended
        /// Its thread never runs again.
        case killed
    }

    /// The process identifier.
    let identifier: Int32
    var state = State.ready
    /// Signaled when the process may go on; only the process that was chosen last runs.
    let turn = DispatchSemaphore(value: 0)
    var generator: SeededGenerator
    /// Since when it could run but does not; nil while it runs or waits.
    var readySince: Int64?
    /// Higher goes first, in schedules by priority.
    var priority = 0
    /// Whether it is past opening its cache, and has not ended its program.
    var runsProgram = false
    /// The faults that the process's calls have had so far.
    var faults = 0
    /// The calls of each kind so far.
    var calls = [Int](repeating: 0, count: Int(SIMULATOR_CALLS.rawValue))
    /// Those since the present operation began.
    var callsInOperation = [Int](repeating: 0, count: Int(SIMULATOR_CALLS.rawValue))
    var mappings: [UInt: SimulatedMapping] = [:]
    private var files: [Int: SimulatedDescription] = [:]
    private var nextDescriptor = 1000

    init(identifier: Int32, seed: UInt64) {
        self.identifier = identifier
        generator = SeededGenerator(seed: seed)
    }

    var isAlive: Bool {
        switch state {
        case .ready, .waiting: true
        case .ended, .killed: false
        }
    }

    var descriptors: [Int] { files.keys.sorted() }

    func beginOperation() {
        for index in callsInOperation.indices { callsInOperation[index] = 0 }
    }

    func description(_ descriptor: Int) -> SimulatedDescription? { files[descriptor] }

    func add(_ description: SimulatedDescription) -> Int {
        nextDescriptor += 1
        files[nextDescriptor] = description
        return nextDescriptor
    }

    func removeDescriptor(_ descriptor: Int) -> SimulatedDescription? {
        files.removeValue(forKey: descriptor)
    }
}
