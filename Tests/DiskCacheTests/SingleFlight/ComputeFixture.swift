// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// A cache, a clock, and helpers for the tests of computations.
final class ComputeFixture: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let cache: SharedCache
    /// The number of computations started.
    let computations = Atomic<Int>(0)

    init() throws {
        directory = try TemporaryDirectory()
        cache = try Self.open(directory, clock)
    }

    private static func open(_ directory: TemporaryDirectory, _ clock: ManualClock) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.now = { clock.now }
        // It would switch to a new directory, but some tests need a deleted one.
        configuration.janitor.isEnabled = false
        return try SharedCache(at: directory.path + "/cache", configuration: configuration)
    }

    /// Returns a second cache on the directory, which acts as another process to the kernel's locks.
    func other() throws -> SharedCache {
        try Self.open(directory, clock)
    }

    /// Returns a computation that is counted and waits at the gate.
    func compute(_ text: String, _ gate: Gate? = nil) -> @Sendable () async -> Data {
        { [self] in
            computations.add(1, ordering: .relaxed)
            await gate?.pass()
            return Data(text.utf8)
        }
    }

    /// Returns a counted computation that blocks its thread.
    func computeBlocking(_ text: String, for pause: Duration = .zero) -> @Sendable () -> Data {
        { [self] in
            computations.add(1, ordering: .relaxed)
            sleepThread(for: pause)
            return Data(text.utf8)
        }
    }

    var count: Int { computations.load(ordering: .relaxed) }

    /// The names of the existing flight lock files.
    var lockFiles: [String] { directory.files(below: "cache/locks").filter { $0.hasPrefix("flight") } }

    /// The open descriptors of flight locks of all caches in this process.
    var lockDescriptors: [String] {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        .filter { $0.hasPrefix(directory.path) && $0.contains("/flight-") }
    }

    /// Expects that no flight, lock file or descriptor is left.
    func expectNothingLeft(_ caches: SharedCache...) {
        for cache in [cache] + caches {
            #expect(cache.flights.inProgress == (0, 0))
        }
        #expect(lockFiles.isEmpty)
        #expect(lockDescriptors.isEmpty)
    }
}

extension Flights {
    /// The numbers of flights in progress and of their waiters.
    var inProgress: (flights: Int, waiting: Int) {
        table.withLock { ($0.count, $0.waiting) }
    }
}

/// A gate at which computations wait until a test opens it.
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

    /// The number of computations that wait.
    var count: Int { state.withLock { $0.waiting.count } }
}

/// Waits until a condition is true, like `waitUntil`, but without blocking a thread.
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

/// An error that a test's computations throw.
struct Broken: Error, Equatable {
    var number = 0
}

extension Data {
    var text: String { String(decoding: self, as: UTF8.self) }
}

extension Optional where Wrapped == CacheHit<Data> {
    /// The value, or "nothing" for nil.
    var text: String { self?.value.text ?? "nothing" }
}
