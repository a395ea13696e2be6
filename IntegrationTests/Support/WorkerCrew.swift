// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Probes
import TestSupport

/// Worker processes on one cache, which can be killed and restarted, and the history of all of them.
final class WorkerCrew {
    /// One worker process.
    private final class Member {
        let order: WorkerOrder
        var process: ChildProcess
        /// The time at which its end was known, on the clock of the logs.
        var ended: UInt64?

        init(_ order: WorkerOrder, _ environment: [String: String]) throws {
            self.order = order
            process = try ChildProcess(
                starting: BuiltCommand.probes,
                ["worker"] + order.arguments,
                environment: environment
            )
        }

        var operations: Int {
            (0..<order.role.threads).reduce(0) { $0 + OperationLog.count(of: order.log(ofThread: $1)) }
        }
    }

    private let directory: String
    private let logs: TemporaryDirectory
    private let environment: [String: String]
    private let seed: UInt64
    /// Whether the workers compare values in memory with the generations of their keys.
    var checksGenerations = true
    /// All workers that were ever started; the live ones are in `places`.
    private var members: [Member] = []
    private var places: [Member] = []

    init(on directory: String, environment: [String: String], seed: UInt64) throws {
        self.directory = directory
        self.environment = environment
        self.seed = seed
        logs = try TemporaryDirectory()
    }

    /// The number of processes that were killed.
    private(set) var kills = 0
    /// The ends that were neither requested nor caused by a kill.
    private(set) var crashes: [ChildProcess.End] = []

    /// The number of operations of all workers so far, dead ones included.
    var operations: Int { members.reduce(0) { $0 + $1.operations } }

    /// Whether every live worker whose operations are recorded has done at least one.
    var isAtWork: Bool { places.allSatisfy { $0.order.role == .collector || $0.operations > 0 } }

    /// Starts a worker for each role.
    func start(_ roles: [WorkerRole]) throws {
        for role in roles { places.append(try member(role)) }
    }

    private func member(_ role: WorkerRole) throws -> Member {
        let number = members.count + 1
        var order = WorkerOrder(
            directory: directory,
            logs: logs.path,
            number: number,
            role: role,
            seed: SplitMix64.mix(seed &+ UInt64(number))
        )
        order.checksGenerations = checksGenerations
        let member = try Member(order, environment)
        members.append(member)
        return member
    }

    /// Kills the worker at this place and starts another one with the same role.
    func replace(_ place: Int) throws {
        try kill(place)
        places[place] = try member(places[place].order.role)
    }

    /// Kills all workers at once.
    func killAll() throws {
        for member in places { member.process.send(.kill) }
        for place in places.indices { try kill(place) }
        places = []
    }

    private func kill(_ place: Int) throws {
        let member = places[place]
        member.process.send(.kill)
        if try member.process.wait() == .killed(.kill) {
            kills += 1
        } else {
            crashes.append(try member.process.wait())
        }
        member.ended = OperationLog.now
    }

    /// Lets all workers finish their current operations, and stops them.
    func stop() throws {
        for member in places { member.process.closeInput() }
        for member in places {
            let end = try member.process.wait()
            if end != .exited(0) { crashes.append(end) }
            member.ended = OperationLog.now
        }
        places = []
    }

    /// Returns the operations of all workers, after all of them have ended.
    func history() throws -> CrewHistory {
        precondition(places.isEmpty, "there are workers")
        var history = CrewHistory()
        for member in members {
            for thread in 0..<member.order.role.threads {
                let path = member.order.log(ofThread: thread)
                // The worker may have been killed before it created its log.
                guard FileManager.default.fileExists(atPath: path) else { continue }
                history.add(
                    try OperationLog.entries(of: path),
                    by: UInt32(member.order.number),
                    ended: member.ended ?? .max
                )
            }
        }
        history.dropEarlyReads()
        return history
    }
}

/// The operations of a crew, by key.
struct CrewHistory {
    /// The operations on each key, which must be linearizable.
    private(set) var operations = [[RegisterOperation]](repeating: [], count: UniqueValues.keys.count)
    /// The number of reads that returned no value, or another key's.
    private(set) var damaged = 0
    /// The values that two updates have each replaced, which is one too many.
    private(set) var replacedTwice: [UInt64] = []
    private var replaced: Set<UInt64> = []
    /// The number of values that calls found or shared instead of computing them.
    private(set) var flights = 0
    /// The values that those calls found and the times of their starts, and the times at which computing calls ended.
    private var found: [(value: UInt64, start: UInt64)] = []
    private var computed: [UInt64: UInt64] = [:]
    /// The values that were put in the background, with the latest time of their publication.
    private var publications: [UInt64: UInt64] = [:]
    /// The number of reads of values that only the reading process could see, because they were not published yet.
    private(set) var earlyReads = 0
    private(set) var misses = 0
    private(set) var memoryHits = 0
    private(set) var diskHits = 0
    /// The number of writes that a kill has cut off.
    private(set) var pending = 0

    /// The number of flight values that were still being computed when they were requested, so that the call has waited for
    /// them.
    var shared: Int { found.count { $0.start < computed[$0.value, default: 0] } }
    /// The number of puts in the background.
    var behind: Int { publications.count }
    var count: Int { operations.reduce(0) { $0 + $1.count } }

    fileprivate mutating func add(_ entries: [OperationLog.Entry], by actor: UInt32, ended: UInt64) {
        for entry in entries {
            let kind: RegisterOperation.Kind
            switch entry.kind {
            case .replaced:
                kind = .read(entry.value)
                if !replaced.insert(entry.value).inserted { replacedTwice.append(entry.value) }
            case .read:
                kind = .read(entry.value)
                if entry.tier == .memory { memoryHits += 1 }
                if entry.tier == .disk { diskHits += 1 }
            case .miss:
                misses += 1
                kind = .miss
            case .write: kind = .write(entry.value)
            case .computed:
                kind = .write(entry.value)
                computed[entry.value] = entry.end
            case .behind:
                kind = .write(entry.value)
                publications[entry.value] = entry.end == 0 ? .max : entry.end
            case .remove: kind = .remove
            case .flight:
                flights += 1
                found.append((entry.value, entry.start))
                kind = .read(entry.value)
            case .damaged:
                damaged += 1
                continue
            }
            let isPending = entry.end == 0
            if isPending { pending += 1 }
            operations[entry.key].append(
                RegisterOperation(
                    kind,
                    entry.start,
                    isPending ? ended : entry.end,
                    isPending: isPending,
                    actor: actor
                )
            )
        }
    }

    /// Drops the reads that processes make of their own background puts before these are known to be published.
    ///
    /// A flush shows that, or a read of the value by another process. While no other process can see a value, it may exist
    /// for its own process and not for the others.
    fileprivate mutating func dropEarlyReads() {
        var published = publications
        for operation in operations.joined() {
            guard case .read(let value) = operation.kind, let end = published[value],
                operation.actor != UniqueValues.worker(of: value)
            else { continue }
            published[value] = min(end, operation.end)
        }
        for key in operations.indices {
            let count = operations[key].count
            operations[key].removeAll { operation in
                guard case .read(let value) = operation.kind, let end = published[value],
                    operation.actor == UniqueValues.worker(of: value)
                else { return false }
                return operation.start < end
            }
            earlyReads += count - operations[key].count
        }
    }

    /// All violations of linearizability in the histories of the keys.
    var violations: [LinearizabilityViolation] {
        operations.flatMap { Linearizability.violations(of: $0) }
    }
}

extension CrewHistory: CustomStringConvertible {
    var description: String {
        """
        \(count) operations: \(memoryHits) hits in memory, \(diskHits) on disk, \(misses) misses, \
        \(replaced.count) updates, \(flights) values of flights, \(shared) of them shared, \(behind) puts in the background with \
        \(earlyReads) reads before they were published, \(pending) writes cut off
        """
    }
}
