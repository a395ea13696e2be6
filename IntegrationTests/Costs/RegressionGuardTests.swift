// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests that operations cost as many allocations as recorded, and as many instructions within 5 %.
///
/// No number depends on time, on the load or on the processor. (System calls are counted in ``SystemCallTests``.) After an
/// intended change `DISKCACHE_RECORD=1 swift test --filter RegressionGuardTests` records the costs again; the diff of the
/// file then shows the effect of the change.
@Suite(
    .serialized,
    .takesTurns,
    .enabled(if: OptimizedProbe.isCurrent, "there is no current release build: swift build -c release")
)
struct RegressionGuardTests {
    private static let recorded = RecordedCosts.recorded
    private static let isRecording = ProcessInfo.processInfo.environment["DISKCACHE_RECORD"] == "1"

    private static let allocating = [
        "memory-hits", "get", "miss", "miss-removed", "new", "overwrite", "replace", "behind", "compute",
    ]
    private static let executing = ["memory-hits", "get", "miss"]
    /// The tolerance for small changes of the compiler or the C library.
    private static let tolerance = 0.05

    private static let isSameCompiler =
        recorded?.compiler == CountingTools.compiler && recorded?.architecture == CountingTools.architecture
    private static let isSameCounter = isSameCompiler && recorded?.valgrind == CountingTools.valgrind
    private static let canCountAllocations = CountingTools.hasClang && CountingTools.hasAttributeCalls

    /// Returns allocations rounded to hundredths: an array that doubles now and then belongs to no single operation.
    private static func allocations(_ operation: String) throws -> Double {
        (try OptimizedProbe.count("allocations.sh", operation, times: 600) * 100).rounded() / 100
    }

    private static func instructions(_ operation: String) throws -> Double {
        try OptimizedProbe.count("instructions.sh", operation, times: 1000)
    }

    @Test(
        .enabled(if: !isRecording),
        .enabled(if: canCountAllocations, "it takes clang, and Linux 6.13"),
        .enabled(if: isSameCompiler, "the numbers were recorded with \(recorded?.compiler ?? "nothing")"),
        arguments: allocating
    )
    func `an operation allocates as often as recorded`(_ operation: String) throws {
        let expected = try #require(Self.recorded?.allocations[operation])
        let found = try Self.allocations(operation)
        #expect(found == expected, "allocations in \(operation)")
    }

    @Test(
        .enabled(if: !isRecording),
        .enabled(if: CountingTools.valgrind != nil, "valgrind is not installed"),
        .enabled(
            if: isSameCounter,
            "the numbers were recorded with \(recorded?.compiler ?? "nothing"), \(recorded?.valgrind ?? "")"
        ),
        arguments: executing
    )
    func `an operation executes as many instructions as recorded, within 5 %`(_ operation: String) throws {
        let expected = try #require(Self.recorded?.instructions[operation])
        let found = try Self.instructions(operation)
        // Fewer instructions fail, too: an improvement that is not recorded could be lost unnoticed.
        #expect(abs(found - expected) <= expected * Self.tolerance, "instructions in \(operation)")
    }

    @Test(.enabled(if: isRecording, "DISKCACHE_RECORD=1 records what is counted here"))
    func `DISKCACHE_RECORD=1 records the costs`() throws {
        let costs = RecordedCosts(
            compiler: try #require(CountingTools.compiler),
            valgrind: try #require(CountingTools.valgrind, "valgrind is not installed"),
            architecture: CountingTools.architecture,
            allocations: try Self.measured(Self.allocating, Self.allocations),
            instructions: try Self.measured(Self.executing, Self.instructions)
        )
        try costs.record()
    }

    private static func measured(
        _ operations: [String],
        _ measure: (String) throws -> Double
    ) throws -> [String: Double] {
        try Dictionary(uniqueKeysWithValues: operations.map { ($0, try measure($0)) })
    }
}
