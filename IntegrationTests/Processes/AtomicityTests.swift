// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Probes
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Tests of calls that must be atomic across processes.
@Suite(.takesTurns) struct AtomicityTests {
    private let place: TemporaryDirectory
    private let path: String

    init() throws {
        place = try TemporaryDirectory()
        path = place.path + "/cache"
    }

    private func crew(_ roles: [WorkerRole], _ form: Form, operations: Int) throws -> WorkerCrew {
        let crew = try WorkerCrew(on: path, environment: form.program.environment, seed: 1)
        try crew.start(roles)
        waitUntil("they have done so much") { crew.operations >= operations || !crew.crashes.isEmpty }
        try crew.stop()
        #expect(crew.crashes.isEmpty)
        return crew
    }

    @Test(arguments: Form.allCases)
    func `two processes that count with update lose no count`(form: Form) throws {
        let operations = form == .sidecar ? 400 : 2000
        let crew = try crew([.counter, .counter], form, operations: operations)
        let hit = try #require(try SharedCache(at: path).get(forKey: UniqueValues.counter))
        #expect(crew.operations >= operations)
        #expect(String(decoding: hit.value, as: UTF8.self) == "\(crew.operations)")
    }

    @Test(arguments: Form.allCases)
    func `for each absent key exactly one of eight processes that put it stores its value`(form: Form) throws
    {
        let roles = Array(repeating: WorkerRole.claimant, count: 8)
        let crew = try crew(roles, form, operations: roles.count * UniqueValues.keys.count)
        let cache = try SharedCache(at: path)
        for (key, operations) in try crew.history().operations.enumerated() {
            let stored = operations.compactMap { operation -> UInt64? in
                guard case .write(let value) = operation.kind else { return nil }
                return value
            }
            #expect(stored.count == 1, "key \(key)")
            let hit = try #require(try cache.get(forKey: UniqueValues.keys[key]))
            #expect(UniqueValues.number(of: hit.value, key: key) == stored.first)
        }
    }
}
