// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Tests of real processes on one directory, some of them killed at any instant, with continuous garbage collection.
///
/// Every get checks every byte.
@Suite(.serialized, .takesTurns)
struct MultiProcessTests {
    private func plan(puts: Int, removals: Int = 0, operations: Int) -> BenchPlan {
        var plan = BenchPlan()
        plan.workers = 8
        plan.operations = isSoak ? 160_000 : operations
        (plan.puts, plan.removals) = (puts, removals)
        // With few keys, and every second value a repeated one, objects become unreferenced and are needed again all the
        // time.
        plan.keys = 64
        plan.repeats = 50
        plan.isCollecting = true
        // Long enough for a worker to get to work: its start takes about 30 ms of processor time.
        plan.killSeconds = 0.05
        return plan
    }

    private func stress(_ plan: BenchPlan, in directory: String, _ form: Form) throws {
        let cache = try SharedCache(at: directory, configuration: form.configuration)
        var bench = Bench(plan, on: cache, program: form.program)
        let result = try bench.run()
        print(result.text)
        let counts = result.report.counts
        #expect(counts.wrong == 0 && counts.failures == 0 && result.crashes.isEmpty)
        #expect(result.report.operations >= plan.operations ?? 0)
        if plan.removals == 0 { #expect(counts.misses == 0, "every key has a value all the time") }
        #expect(result.kills > 0 && counts.collections > 0, "the test is about kills and collections")
        #expect(result.leftovers.isClean)
        try DirectoryAudit(of: directory).expectNoLeftovers(cache)
    }

    @Test(arguments: Form.allCases)
    func `kills and collections beside readers and writers cause no wrong byte, loss or leftover`(
        form: Form
    ) throws {
        let place = try TemporaryDirectory()
        // Sidecars cost ten times as much.
        let plan = plan(puts: 10, operations: form == .sidecar ? 2400 : 4800)
        try stress(plan, in: place.path + "/cache", form)
    }

    @Test(arguments: Form.allCases)
    func `kills and collections beside removals cause no wrong byte or leftover`(form: Form) throws {
        let place = try TemporaryDirectory()
        let plan = plan(puts: 30, removals: 10, operations: form == .sidecar ? 2400 : 4800)
        try stress(plan, in: place.path + "/cache", form)
    }

    @Test(
        .enabled(if: MountedFileSystem.canMountRAMFS, "ramfs can't be mounted here: it takes root"),
        arguments: [0, 10]
    )
    func `kills and collections without attributes cause no wrong byte or leftover`(removals: Int) throws {
        let mounted = try MountedFileSystem("ramfs")
        try stress(
            plan(puts: 20, removals: removals, operations: 4800),
            in: mounted.path + "/cache",
            .automatic
        )
    }
}
