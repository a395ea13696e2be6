// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// A cache, a clock, and short words for what the tests of computing do with them.
final class ComputeFixture: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let cache: SharedCache
    /// How often a computation was begun.
    let computations = Atomic<Int>(0)

    init() throws {
        directory = try TemporaryDirectory()
        cache = try Self.open(directory, clock)
    }

    private static func open(_ directory: TemporaryDirectory, _ clock: ManualClock) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.now = { clock.now }
        // It would go on in a new directory, and some tests are about one that is gone.
        configuration.janitor.isEnabled = false
        return try SharedCache(at: directory.path + "/cache", configuration: configuration)
    }

    /// A second cache on the directory: to the kernel's locks it is as another process.
    func other() throws -> SharedCache {
        try Self.open(directory, clock)
    }

    /// A computation that is counted and waits for the gate.
    func compute(_ text: String, _ gate: Gate? = nil) -> @Sendable () async -> Data {
        { [self] in
            computations.add(1, ordering: .relaxed)
            await gate?.pass()
            return Data(text.utf8)
        }
    }

    /// The same, on a thread.
    func computeBlocking(_ text: String, for pause: Duration = .zero) -> @Sendable () -> Data {
        { [self] in
            computations.add(1, ordering: .relaxed)
            sleepThread(for: pause)
            return Data(text.utf8)
        }
    }

    var count: Int { computations.load(ordering: .relaxed) }

    /// Names of the flight locks' files that are there.
    var lockFiles: [String] { directory.files(below: "cache/locks").filter { $0.hasPrefix("flight") } }

    /// Descriptors open on flight locks, of whatever cache in this process.
    var lockDescriptors: [String] {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        .filter { $0.hasPrefix(directory.path) && $0.contains("/flight-") }
    }

    /// Nothing that computing took is left.
    func expectNothingLeft(_ caches: SharedCache...) {
        for cache in [cache] + caches {
            #expect(cache.flights.inProgress == (0, 0))
        }
        #expect(lockFiles.isEmpty)
        #expect(lockDescriptors.isEmpty)
    }
}

extension Flights {
    /// Flights under way and those who wait for them.
    var inProgress: (flights: Int, waiting: Int) {
        table.withLock { ($0.count, $0.waiting) }
    }
}

/// What computations wait at until a test lets them go.
final class Gate: Sendable {
    private let state = Locked<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// How many stand at it.
    var count: Int { state.withLock { $0.waiting.count } }
}

/// Waits until something is so, as `waitUntil` does, without a thread.
func eventually(
    _ what: Comment,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () throws -> Bool
) async throws {
    let end = ContinuousClock.now + hangLimit
    while try !condition() {
        guard ContinuousClock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return
        }
        try await Task.sleep(for: .milliseconds(1))
    }
}

/// An error of a test's computations.
struct Broken: Error, Equatable {
    var number = 0
}

extension Data {
    var text: String { String(decoding: self, as: UTF8.self) }
}

extension Optional where Wrapped == CacheHit<Data> {
    /// The value; "nothing" where there is none.
    var text: String { self?.value.text ?? "nothing" }
}
