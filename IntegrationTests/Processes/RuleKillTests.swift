// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// Tests of a removal of all values that is killed at each of its steps: every process finds all values or none.
@Suite(.serialized, .takesTurns)
struct RuleKillTests {
    private static let count = 20

    private func cache(at path: String) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.janitor.joinsSession = false
        return try SharedCache(at: path, configuration: configuration)
    }

    /// Returns the number of values that are found.
    private func found(in cache: SharedCache) throws -> Int {
        try (0..<Self.count).count { index in
            guard let hit = try cache.get(forKey: "key \(index)") else { return false }
            #expect(hit.value == Data("value \(index)".utf8))
            return true
        }
    }

    @Test(arguments: RuleStep.allCases)
    func `a removal of all values that is killed has removed all or nothing`(step: RuleStep) throws {
        let place = try TemporaryDirectory()
        let warm = try cache(at: place.path + "/cache")
        for index in 0..<Self.count { try warm.put("value \(index)", forKey: "key \(index)") }
        #expect(try found(in: warm) == Self.count)
        var process = try stoppedProcess(at: step.rawValue, in: warm.path)
        let expected = step == .inForce ? 0 : Self.count
        #expect(try found(in: warm) == expected, "while it is under way")
        let late = try cache(at: warm.path)
        #expect(try found(in: late) == expected)
        process.send(.kill)
        #expect(try process.wait() == .killed(.kill))
        for cache in [warm, late, try self.cache(at: warm.path)] {
            #expect(try found(in: cache) == expected)
            #expect(try found(in: cache) == expected)
        }
        try late.put("new", forKey: "new")
        #expect(try warm.get(forKey: "new")?.value == Data("new".utf8))
        try warm.directory.collect()
        for cache in [warm, late] { #expect(try found(in: cache) == expected) }
        #expect(try warm.directory.statistics().entries == expected + 1)
        try late.removeAll()
        for cache in [warm, late, try self.cache(at: warm.path)] {
            #expect(try found(in: cache) == 0 && cache.get(forKey: "new") == nil)
        }
        try warm.directory.collect()
        #expect(try DirectoryAudit(of: warm.path).entries.isEmpty)
    }
}
