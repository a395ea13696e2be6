// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import diskcache

/// Real processes on one directory, some of them killed at any instant, garbage collected all the time.
///
/// Every get checks every byte, and that no value comes back after a later one of the same writer.
@Suite(.serialized, .takesTurns)
struct MultiProcessTests {
    /// DISKCACHE_SOAK=1 asks for the full size: 8 processes of 20,000 operations, one killed each 50 ms.
    static let isSoak = ProcessInfo.processInfo.environment["DISKCACHE_SOAK"] == "1"

    private func plan(_ workloads: [BenchTask], operations: Int) -> BenchPlan {
        var plan = BenchPlan()
        plan.workers = 8
        plan.seconds = nil
        plan.operations = Self.isSoak ? 20_000 : operations
        plan.workloads = workloads
        plan.sizes = [4096]
        // Few keys and every second value an old one: objects are given up and wanted again all the time.
        plan.keys = 64
        plan.repeatPercent = 50
        plan.isCollecting = true
        // Long enough for a worker to get to work: starting one takes some 30 ms of a processor.
        plan.killInterval = .milliseconds(50)
        plan.seed = UInt64.random(in: 0...UInt64(Int.max))
        return plan
    }

    private func stress(_ plan: BenchPlan, in directory: String, _ form: Form) throws {
        let cache = try SharedCache(at: directory, configuration: form.configuration)
        var bench = Bench(plan, on: cache, program: form.program)
        let result = try bench.run()
        print(BenchTable.text(result), "seed \(plan.seed)")
        #expect(result.wrong == 0 && result.wrongValues.isEmpty)
        #expect(result.failures.isEmpty && result.crashes.isEmpty)
        for row in result.rows {
            #expect(row.operations >= plan.workers * (plan.operations ?? 0))
            #expect(row.kills > 0, "the test is about kills")
            if row.workload == .mixed { #expect(row.misses == 0, "every key has a value all the time") }
        }
        #expect(result.rows.allSatisfy { $0.sweeps > 0 }, "and about collections")
        #expect(result.leftovers?.isClean == true)
        try DirectoryAudit(of: directory).expectNoLeftovers(cache)
    }

    @Test(arguments: Form.allCases)
    func `kills and collections beside readers and writers: no wrong byte, no loss, nothing left`(
        form: Form
    ) throws {
        let place = try TemporaryDirectory()
        // Sidecars cost ten times as much.
        let plan = plan([.mixed], operations: form == .sidecar ? 300 : 600)
        try stress(plan, in: place.path + "/cache", form)
    }

    @Test(arguments: Form.allCases)
    func `the same with removals`(form: Form) throws {
        let place = try TemporaryDirectory()
        let plan = plan([.churn], operations: form == .sidecar ? 300 : 600)
        try stress(plan, in: place.path + "/cache", form)
    }

    @Test(
        .enabled(if: MountedFileSystem.canMountRAMFS, "ramfs can't be mounted here: it takes root")
    )
    func `the same on a file system without extended attributes`() throws {
        let mounted = try MountedFileSystem("ramfs")
        try stress(plan([.mixed, .churn], operations: 600), in: mounted.path + "/cache", .automatic)
    }
}
