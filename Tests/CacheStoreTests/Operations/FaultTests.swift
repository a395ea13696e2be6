// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Each system call of an operation fails in turn, with two of a few errors, and with all in long runs.
///
/// The operation may fail or succeed. It must not trap, leak a descriptor, return a wrong byte, or leave anything that a
/// sweep doesn't remove.
@Suite(.takesTurns) struct FaultTests {
    /// An operation on a store in which `key` has the value "old".
    enum Operation: String, CaseIterable, Sendable {
        case open, put, overwrite, get, remove, rule, sweep

        func callAsFunction(_ fixture: StoreFixture) throws {
            switch self {
            case .open: _ = try StoreFixture.open(fixture.path)
            case .put: try fixture.put(FaultTests.large, "another")
            case .overwrite: try fixture.put(FaultTests.large, "key")
            case .get: #expect([nil, "old"].contains(try fixture.get("key")))
            case .remove: _ = try fixture.store.remove(Digest(ofKey: "key"))
            case .rule: _ = fixture.store.enact(.remove, .tagged("none"), now: .now)
            case .sweep: try fixture.sweep()
            }
        }
    }

    private static let large = String(repeating: "4 KiB ", count: 683)
    private static let errors = [EIO, ENOSPC, EMFILE, EACCES, ENOMEM].map { Errno(rawValue: $0) }

    @Test(arguments: Operation.allCases, RecordForm.both)
    func `a failure of any one system call causes no wrong value, leak or leftover`(
        operation: Operation,
        form: RecordForm
    ) throws {
        let fixture = try StoreFixture(form)
        for error in sample(2, of: Self.errors) {
            try Self.prepare(fixture)
            let before = openFiles(below: fixture.path)
            var place = 0
            while true {
                try Self.prepare(fixture)
                let failed = try Self.run(operation, on: fixture, failing: place, with: error)
                let trial =
                    "\(operation.rawValue), call \(place), \(failed.map { "\($0)" } ?? "none"): \(error)"
                try Self.checkValues(fixture, trial)
                guard failed != nil else { break }
                place += 1
            }
            try #require(place > 0, "no system call was seen")
            // What a trial leaks or leaves behind stays until here: checked after each, it would take twice the time.
            try Self.checkFiles(fixture, "\(operation.rawValue), some call: \(error)")
            #expect(openFiles(below: fixture.path) == before, "\(operation.rawValue), some call: \(error)")
        }
    }

    @Test(arguments: Operation.allCases, sample(2, of: errors))
    func `a system call that fails each time leaves nothing behind either`(operation: Operation, error: Errno)
        throws
    {
        let fixture = try StoreFixture()
        try Self.prepare(fixture)
        let before = openFiles(below: fixture.path)
        for call in SystemCall.allCases {
            try Self.prepare(fixture)
            Self.attempt {
                try SystemCall.withFaults({ $0 == call ? .error(error) : nil }, { try operation(fixture) })
            }
            try Self.checkValues(fixture, "\(operation), \(call): \(error)")
        }
        try Self.checkFiles(fixture, "\(operation), some call: \(error)")
        #expect(openFiles(below: fixture.path) == before, "\(operation), some call: \(error)")
    }

    @Test(arguments: [0, 1, 100])
    func `short reads and writes are continued until all bytes are moved`(most: Int) throws {
        let fixture = try StoreFixture()
        let isShort = Locked(false)
        try SystemCall.withFaults { call in
            guard call == .write || call == .read else { return nil }
            // A call that moves nothing signals the end, so only every other call is short.
            let moves = isShort.withLock { isShort in
                isShort.toggle()
                return isShort
            }
            return moves ? .short(most) : nil
        } _: {
            Self.attempt { try fixture.put(Self.large, "key") }
            let value = try fixture.get("key")
            #expect([nil, Self.large].contains(value))
        }
    }

    /// Fails the system call at `place` of an operation.
    ///
    /// - Returns: The failed call, or nil if the operation makes fewer calls.
    private static func run(
        _ operation: Operation,
        on fixture: StoreFixture,
        failing place: Int,
        with error: Errno
    ) throws -> SystemCall? {
        let state = Locked<(count: Int, failed: SystemCall?)>((0, nil))
        attempt {
            try SystemCall.withFaults { call in
                // A sweep then does all its work on this thread.
                if call == .makeThread { return .error(Errno(rawValue: EAGAIN)) }
                return state.withLock { state in
                    state.count += 1
                    guard state.count == place + 1 else { return nil }
                    state.failed = call
                    return .error(error)
                }
            } _: {
                try operation(fixture)
            }
        }
        return state.withLock { $0.failed }
    }

    /// Runs `body`, which may fail only with a `CacheError`.
    private static func attempt(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            #expect(error is CacheError, "\(error)")
        }
    }

    private static func prepare(_ fixture: StoreFixture) throws {
        try fixture.put("old", "key")
        _ = try fixture.store.remove(Digest(ofKey: "another"))
    }

    private static func checkValues(_ fixture: StoreFixture, _ trial: String) throws {
        let value = try fixture.get("key")
        let another = try fixture.get("another")
        #expect([nil, "old", large].contains(value), "\(trial)")
        #expect([nil, large].contains(another), "\(trial)")
    }

    /// Checks that after another sweep only the files of the readable values exist.
    private static func checkFiles(_ fixture: StoreFixture, _ trial: String) throws {
        let value = try fixture.get("key")
        let another = try fixture.get("another")
        try fixture.sweep()
        #expect(fixture.temporaries.isEmpty, "\(trial)")
        #expect(fixture.objects.count == Set([value, another].compactMap { $0 }).count, "\(trial)")
        #expect(fixture.entries.count == [value, another].compactMap { $0 }.count, "\(trial)")
        #expect(try fixture.get("key") == value && fixture.get("another") == another, "\(trial)")
    }

    /// Returns the files that this process has open below a directory, except locks, which stay open.
    private func openFiles(below path: String) -> [String] {
        let files = FileManager.default
        let numbers = (try? files.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.compactMap { try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0) }
            .filter { $0.hasPrefix(path) && !$0.hasPrefix(path + "/locks/") }.sorted()
    }
}
