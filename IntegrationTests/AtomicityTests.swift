// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import diskcache

/// Calls that must be atomic across processes, with real ones.
@Suite(.takesTurns) struct AtomicityTests {
    private func crew(
        _ task: BenchTask,
        count: Int,
        operations: Int,
        in directory: String,
        _ form: Form
    ) throws -> CrewResult {
        let plans = (0..<count).map { index in
            var plan = WorkerPlan(directory: directory, task: task, stream: UInt32(index + 1))
            plan.operations = operations
            return plan
        }
        var crew = try Crew(plans, program: form.program)
        let result = try crew.run()
        #expect(result.crashes.isEmpty && result.failures.isEmpty, "\(result.crashes) \(result.failures)")
        return result
    }

    @Test(arguments: Form.allCases)
    func `two processes that count with update lose no count`(form: Form) throws {
        let place = try TemporaryDirectory()
        let path = place.path + "/cache"
        let operations = form == .sidecar ? 200 : 1000
        let result = try crew(.increment, count: 2, operations: operations, in: path, form)
        #expect(result.report.operations == 2 * operations)
        let hit = try #require(try SharedCache(at: path).get(LockstepWorker.key))
        #expect(String(decoding: hit.data, as: UTF8.self) == "\(2 * operations)")
    }

    @Test(arguments: Form.allCases)
    func `of eight processes that put what is absent exactly one stores`(form: Form) throws {
        for _ in 0..<5 {
            let place = try TemporaryDirectory()
            let path = place.path + "/cache"
            let result = try crew(.claim, count: 8, operations: 1, in: path, form)
            #expect(result.report.hits == 1)
            let hit = try #require(try SharedCache(at: path).get(LockstepWorker.key))
            #expect((1...8).contains(Int(String(decoding: hit.data, as: UTF8.self)) ?? 0))
        }
    }
}
