// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache
@testable import DiskCacheCommand
@testable import Platform

/// The policy of `doctor` for facts that change while a cache is used: owners, versions, limits, collections.
@Suite(.takesTurns) struct ChecksOfUseTests {
    /// Limits in bytes; the file system of the tests has 50 of 100 bytes free.
    static func limits(
        _ size: Int64?,
        minimumFree: CacheLimits.FreeSpace? = nil
    ) -> DirectoryConfiguration {
        var limits = CacheLimits(maximumSize: size.map { ByteCount($0) })
        limits.minimumFree = minimumFree
        return DirectoryConfiguration(limits)
    }

    @Test func `files of another owner are a risk, and the first three are named`() throws {
        let findings = ChecksTests.findings { $0.foreignFiles = ["a", "b", "c", "d", "e"] }
        let owner = try #require(findings.first { $0.subject == "owner" })
        #expect(owner.level == .risk && owner.state == "user 1000, but others own a, b, c and 2 more")
        #expect(owner.advice?.hasPrefix("chown -R 1000 the directory") == true)
    }

    @Test func `a control file of another layout is a risk`() {
        #expect(ChecksTests.troubles { $0.replacedControlVersion = 3 } == ["version": .risk])
    }

    @Test(arguments: [
        (AccessTimes.never, [:]), (.seldom, [:]), (.always, ["access times": Finding.Level.fallback]),
    ])
    func `access times are a fallback only if every read updates them`(
        times: AccessTimes,
        troubles: [String: Finding.Level]
    ) {
        #expect(ChecksTests.troubles { $0.space = ChecksTests.space(accessTimes: times) } == troubles)
    }

    @Test func `missing features of the kernel or the processor are a fallback`() {
        #expect(ChecksTests.troubles { $0.hasAttributeCalls = false } == ["kernel": .fallback])
        #expect(ChecksTests.troubles { $0.hasEmptyPathLinks = false } == ["kernel": .fallback])
        #expect(ChecksTests.troubles { $0.hasHashInstructions = false } == ["processor": .fallback])
    }

    // MARK: Time

    @Test(arguments: [
        (Duration.seconds(2), nil as Duration?, false), (.milliseconds(2001), nil, true),
        (.seconds(-100), nil, false), (.seconds(3), .seconds(2), false), (.seconds(5), .seconds(2), true),
    ])
    func `files with future change times show that the clock was set back`(
        newest: Duration,
        skew: Duration?,
        isRisk: Bool
    ) throws {
        let findings = ChecksTests.findings {
            $0.newestChange = newest
            $0.clockSkew = skew
        }
        let clock = try #require(findings.first { $0.subject == "clock" })
        #expect((clock.level == .risk) == isRisk)
        #expect(clock.state.hasPrefix("was set back") == isRisk)
    }

    @Test(arguments: [(Duration.seconds(60), false), (.seconds(61), true)])
    func `values with future times show that the clock was ahead`(newest: Duration, isRisk: Bool) throws {
        let findings = ChecksTests.findings { $0.newestValue = newest }
        let clock = try #require(findings.first { $0.subject == "clock" })
        #expect((clock.level == .risk) == isRisk)
        #expect(clock.state.contains("ahead") == isRisk)
    }

    @Test(arguments: [
        (Duration.seconds(60), false, false), (.seconds(3600), false, false), (.seconds(3601), false, true),
        (.seconds(1), true, true),
    ])
    func `a collector that runs for over an hour, or is stopped, is a risk`(
        duration: Duration,
        isStopped: Bool,
        isRisk: Bool
    ) {
        let troubles = ChecksTests.troubles {
            $0.wasInterrupted = true
            $0.collector = .init(process: 12, duration: duration, isStopped: isStopped)
        }
        #expect(troubles == (isRisk ? ["collections": .risk] : [:]))
    }

    @Test(arguments: [
        (nil as Duration?, Duration.seconds(86400), false), (nil, .seconds(86401), true),
        (.seconds(86400), .seconds(999_999), false), (.seconds(86401), .seconds(999_999), true),
    ])
    func `a day without a collection is a fallback`(last: Duration?, age: Duration, isTrouble: Bool) {
        let troubles = ChecksTests.troubles {
            $0.sinceCollection = last
            $0.age = age
        }
        #expect(troubles == (isTrouble ? ["collections": .fallback] : [:]))
    }

    // MARK: Limits

    @Test func `an unreadable configuration, or one with a misspelled key, is a risk`() throws {
        #expect(
            ChecksTests.troubles { $0.configurationProblem = "it is not a JSON object" } == [
                "config.json": .risk
            ]
        )
        let misspelt = try DirectoryConfiguration(json: Array(#"{"minimumFree": 1, "maxSize": 1}"#.utf8))
        #expect(ChecksTests.troubles { $0.configuration = misspelt } == ["config.json": .risk])
    }

    @Test func `a cache without a limit or a minimum of free space is a fallback`() {
        #expect(ChecksTests.troubles { $0.configuration = Self.limits(nil) } == ["limit": .fallback])
        #expect(
            ChecksTests.troubles { $0.configuration = Self.limits(nil, minimumFree: .percent(10)) }.isEmpty
        )
    }

    @Test(arguments: [
        (Int64(50), Int64(0), false, false), (51, 0, false, true), (60, 10, false, false),
        (61, 10, false, true),
        (99, 0, true, false),
    ])
    func `a limit that exceeds the space of the file system is a risk`(
        limit: Int64,
        used: Int64,
        hasMinimumFree: Bool,
        isRisk: Bool
    ) {
        let troubles = ChecksTests.troubles {
            $0.configuration = Self.limits(limit, minimumFree: hasMinimumFree ? .percent(10) : nil)
            $0.usedBytes = used
        }
        #expect(troubles == (isRisk ? ["limit": .risk] : [:]))
    }

    @Test(arguments: [
        (CacheLimits.FreeSpace.percent(50), nil as Int64?, false), (.percent(51), nil, true),
        (.percent(60), 10, false),
        (.bytes(.bytes(60)), 10, false), (.bytes(.bytes(61)), 10, true),
    ])
    func `a minimum of free space that an empty cache could not keep is a risk`(
        floor: CacheLimits.FreeSpace,
        used: Int64?,
        isRisk: Bool
    ) {
        let troubles = ChecksTests.troubles {
            $0.configuration = Self.limits(nil, minimumFree: floor)
            $0.usedBytes = used
        }
        #expect(troubles == (isRisk ? ["limit": .risk] : [:]))
    }

    @Test func `a limit below an empty cache's size is a risk`() {
        for (overhead, isRisk) in [(Int64(40), false), (41, true)] {
            let troubles = ChecksTests.troubles {
                $0.configuration = Self.limits(40)
                $0.overhead = overhead
            }
            #expect(troubles == (isRisk ? ["limit": .risk] : [:]))
        }
    }

    @Test(arguments: [
        (1000, 900, 4000, 400, true), (1000, 499, 4000, 400, false), (1000, 900, 4000, 399, false),
        (1000, 900, 300, 255, false), (0, 0, 4000, 400, false),
    ])
    func `evictions are a risk if a tenth of the misses would have been hits`(
        evictions: Int,
        young: Int,
        misses: Int,
        ghosts: Int,
        isRisk: Bool
    ) {
        let troubles = ChecksTests.troubles {
            $0.activity = activity(evictions: evictions, young: young, misses: misses, ghosts: ghosts)
        }
        #expect(troubles == (isRisk ? ["working set": .risk] : [:]))
    }

    @Test(arguments: [
        (Int64(50), nil as Int64?, false), (49, nil, true), (20, 30, false), (19, 30, true), (0, 10, false),
    ])
    func `a cache in memory that may outgrow it is a risk`(memory: Int64, limit: Int64?, isRisk: Bool) {
        let troubles = ChecksTests.troubles {
            $0.fileSystem = FileSystemKind(magic: 0x0102_1994)
            $0.memory = (available: memory, swap: 0)
            if let limit { $0.configuration = Self.limits(limit) }
            $0.usedBytes = 10
        }
        #expect(
            troubles == (isRisk ? ["file system": .fallback, "memory": .risk] : ["file system": .fallback])
        )
    }
}

/// Returns the activity of processes with these numbers of misses and evictions.
func activity(evictions: Int, young: Int, misses: Int, ghosts: Int) -> CacheActivity {
    var activity = CacheActivity()
    activity.collected = [.size: evictions]
    activity.youngEvictions = young
    activity.misses = misses
    activity.ghostMisses = ghosts
    return activity
}
