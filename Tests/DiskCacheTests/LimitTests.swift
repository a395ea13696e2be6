// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// Limits as a user of the library sees them, with real threads and real time, so that bounds are loose.
@Suite(.serialized, .takesTurns)
struct LimitTests {
    private let place: TemporaryDirectory
    private let path: String

    init() throws {
        place = try TemporaryDirectory()
        path = place.path + "/cache"
    }

    private var entries: Int { place.files(below: "cache/entries").count }

    private func fill(_ cache: SharedCache, _ count: Int) throws {
        for index in 0..<count { try cache.put("value \(index)", forKey: "key \(index)") }
    }

    @Test func `limits belong to the directory, not to the cache that opens it`() throws {
        var configuration = CacheConfiguration(maximumSize: .mebibytes(64))
        configuration.limits?.maximumEntries = 5
        let first = try SharedCache(at: path, configuration: configuration)
        #expect(try first.directory.limits().maximumEntries == 5)
        // The second cache gives other limits, which come too late.
        let second = try SharedCache(at: path, configuration: CacheConfiguration(maximumSize: .gibibytes(1)))
        #expect(try second.directory.limits().maximumSize == .mebibytes(64))
        try second.directory.updateLimits { $0.maximumIdleTime = .seconds(7 * 86400) }
        #expect(try first.directory.limits().maximumIdleTime == .seconds(7 * 86400))
        try first.directory.updateLimits { $0 = CacheLimits() }
        #expect(try second.directory.limits() == CacheLimits())
    }

    /// The settings of the file system and of shared memory are not limits and are kept.
    @Test func `opening a directory without limits sets them and keeps its other settings`() throws {
        let first = try SharedCache(at: path)
        try first.directory.updateLimits {
            $0.assumesLocal = true
            $0.sharesMemory = false
        }
        // An unknown setting, such as remote stores or one of a later version.
        let file = URL(fileURLWithPath: path + "/config.json")
        let present = try #require(
            try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
        )
        let later = present.merging(["later": ["key": 1]]) { $1 }
        try JSONSerialization.data(withJSONObject: later).write(to: file)
        let second = try SharedCache(at: path, configuration: CacheConfiguration(maximumSize: .mebibytes(64)))
        let limits = try second.directory.limits()
        #expect(limits.maximumSize == .mebibytes(64))
        #expect(limits.assumesLocal == true && limits.sharesMemory == false)
    }

    @Test(arguments: [true, false])
    func `differing limits are reported once, to the callback and to the first stream`(
        hasCallback: Bool
    ) async throws {
        let owner = try SharedCache(at: path, configuration: CacheConfiguration(maximumSize: .mebibytes(64)))
        let told = Locked<[CacheLimits]>([])
        var configuration = CacheConfiguration(maximumSize: .gibibytes(1))
        if hasCallback {
            configuration.onEvent = { event in
                if case .limitsDiffer(let given, let present) = event {
                    told.withLock { $0 += [given, present] }
                }
            }
        }
        let cache = try SharedCache(at: path, configuration: configuration)
        let limits = [.gibibytes(1), .mebibytes(64)].map { CacheLimits(maximumSize: $0) }
        #expect(told.withLock { $0 } == (hasCallback ? limits : []))
        let (first, second) = (cache.events, cache.events)
        await owner.close()
        await cache.close()
        var events: [[CacheLimits]] = [[], []]
        for await case .limitsDiffer(let given, let present) in first { events[0] += [given, present] }
        for await case .limitsDiffer(let given, let present) in second { events[1] += [given, present] }
        #expect(events == [limits, []])
        #expect(told.withLock { $0 } == (hasCallback ? limits : []))
    }

    @Test(arguments: [
        CacheLimits(), CacheLimits(maximumSize: .mebibytes(64)),
        {
            var limits = CacheLimits(maximumSize: .mebibytes(64))
            (limits.minimumFree, limits.maximumAge) = (.percent(100.0 / 3), .milliseconds(12345))
            // A size of 0 means no log, which is the present state.
            limits.eventLogSize = .bytes(0)
            return limits
        }(),
    ])
    func `limits that the directory has already cause no event`(given: CacheLimits) throws {
        var limits = CacheLimits(maximumSize: .mebibytes(64))
        (limits.minimumFree, limits.maximumAge) = (.percent(100.0 / 3), .milliseconds(12345))
        try SharedCache(at: path).directory.updateLimits { $0 = limits }
        let count = Locked(0)
        var configuration = CacheConfiguration()
        configuration.limits = given
        configuration.onEvent = { event in
            if case .limitsDiffer = event { count.withLock { $0 += 1 } }
        }
        _ = try SharedCache(at: path, configuration: configuration)
        #expect(count.withLock { $0 } == 0)
        configuration.limits?.maximumEntries = 7
        _ = try SharedCache(at: path, configuration: configuration)
        #expect(count.withLock { $0 } == 1)
    }

    @Test func `a change of limits that throws is called once, and its error is rethrown`() throws {
        let cache = try SharedCache(at: path)
        // As if the change had stored something in a cache on another disk, which is full.
        let failure = CacheError(errno: .noSpace, "write an object", path: "/elsewhere")
        var calls = 0
        let error = #expect(throws: CacheError.self) {
            try cache.directory.updateLimits { (_) throws(CacheError) in
                calls += 1
                throw failure
            }
        }
        #expect(error == failure && calls == 1)
    }

    @Test func `invalid limits are refused, and nothing is changed`() throws {
        let cache = try SharedCache(at: path)
        try cache.directory.updateLimits { $0 = CacheLimits(maximumSize: .mebibytes(64)) }
        for change: (inout CacheLimits) -> Void in [
            { $0.maximumSize = .mebibytes(1) }, { $0.maximumEntries = 0 }, { $0.maximumAge = .seconds(-1) },
            { $0.maximumIdleTime = .seconds(-1) }, { $0.eventLogSize = .mebibytes(60) },
            // `config.json` cannot represent these.
            { $0.maximumSize = .bytes(.max) }, { $0.maximumAge = .seconds(1e10) },
        ] {
            let error = #expect(throws: CacheError.self) {
                try cache.directory.updateLimits { (limits) throws(CacheError) in change(&limits) }
            }
            #expect(error?.code == .invalidArgument)
        }
        #expect(try cache.directory.limits() == CacheLimits(maximumSize: .mebibytes(64)))
    }

    @Test func `a janitor evicts down to a limit that another process has lowered`() throws {
        let cache = try SharedCache(at: path)
        try fill(cache, 200)
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let other = try SharedCache(at: path, configuration: configuration)
        try other.directory.updateLimits { $0.maximumEntries = 100 }
        waitUntil("it is so soon") { entries <= 90 }
        #expect(entries >= 80)
        // A collection is counted when it ends, after its last entry is gone.
        try waitUntil("it is counted") {
            try cache.directory.totals()?.activity.collected[.entries] ?? 0 >= 110
        }
    }

    @Test func `values beyond the maximum age are removed by the next collection`()
        throws
    {
        let cache = try SharedCache(at: path)
        try fill(cache, 3)
        try cache.directory.updateLimits { $0.maximumAge = .milliseconds(1) }
        usleep(20_000)
        let report = try cache.directory.collect()
        #expect(report.removed[.age]?.count == 3)
    }

    @Test func `a collection uses the directory's limits unless it is given its own`() throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let cache = try SharedCache(at: path, configuration: configuration)
        try fill(cache, 50)
        try cache.directory.updateLimits { $0.maximumEntries = 20 }
        var options = CollectionOptions()
        options.maximumEntries = 40
        #expect(try cache.directory.collect(options).entries.count == 40)
        #expect(try cache.directory.collect().entries.count == 20)
    }

    @Test func `a put of a value that is too large throws, and a computation still returns it`() throws {
        let cache = try SharedCache(at: path)
        try cache.directory.updateLimits { $0.maximumValueSize = .bytes(10) }
        let error = #expect(throws: CacheError.self) { try cache.put("eleven byte", forKey: "key") }
        #expect(error?.code == .valueTooLarge)
        #expect(error?.message.contains("diskcache config") == true)
        let value = cache.value(forKey: "key") { Data("eleven byte".utf8) }
        #expect(value == Data("eleven byte".utf8))
        #expect(try cache.get(forKey: "key") == nil)
        #expect(cache.directory.activity.cacheFailures == 1)
    }

    @Test func `a damaged configuration is reported once by an event and changes nothing`() throws {
        let failures = Locked(0)
        var configuration = CacheConfiguration()
        configuration.onEvent = { event in
            if case .configurationFailed(let error) = event, error.code == .badConfiguration {
                failures.withLock { $0 += 1 }
            }
        }
        let cache = try SharedCache(at: path, configuration: configuration)
        try cache.directory.updateLimits { $0.maximumEntries = 10 }
        try Data("{".utf8).write(to: URL(fileURLWithPath: path + "/config.json"))
        waitUntil("it is so soon") { failures.withLock { $0 } == 1 }
        try fill(cache, 30)
        #expect(entries <= 10)
        usleep(1_500_000)
        #expect(failures.withLock { $0 } == 1)
        let error = #expect(throws: CacheError.self) { try cache.directory.limits() }
        #expect(error?.code == .badConfiguration)
    }

    @Test func `memory hits are recorded on disk sooner once a limit is set`() throws {
        let cache = try SharedCache(at: path)
        try cache.put("hot", forKey: "hot")
        let store = try Store(at: path)
        let first = try #require(try store.directory.status(of: Digest(ofKey: "hot"), .entries)).accessed
        // The next access of the copy in memory was due to be recorded in four minutes.
        try cache.directory.updateLimits { $0.maximumEntries = 1000 }
        try waitUntil("it is so soon") {
            _ = try cache.get(forKey: "hot")
            return try #require(try store.directory.status(of: Digest(ofKey: "hot"), .entries)).accessed
                > first
        }
        #expect(cache.directory.activity.memoryHits > 0)
    }

    // MARK: Warning

    @Test(arguments: [
        // evictions, young, misses, ghosts
        (1000, 900, 1000, 320, true), (1000, 400, 1000, 320, false), (1000, 900, 10_000, 320, false),
        (1000, 900, 1000, 192, false), (0, 0, 1000, 320, false),
    ])
    func `limits are below the working set if young values are evicted and missed`(
        evictions: Int,
        young: Int,
        misses: Int,
        ghosts: Int,
        isBelow: Bool
    ) {
        var activity = CacheActivity()
        activity.collected = [.size: evictions]
        activity.youngEvictions = young
        activity.misses = misses
        activity.ghostMisses = ghosts
        #expect(activity.isBelowWorkingSet == isBelow)
    }

    @Test func `limits are encoded in JSON as in the configuration file`() throws {
        var limits = CacheLimits(maximumSize: .mebibytes(64))
        limits.minimumFree = .percent(7.5)
        limits.maximumAge = .seconds(86400)
        limits.eventLogSize = .mebibytes(1)
        let cache = try SharedCache(at: path)
        try cache.directory.updateLimits { $0 = limits }
        let data = try Data(contentsOf: URL(fileURLWithPath: path + "/config.json"))
        #expect(try JSONDecoder().decode(CacheLimits.self, from: data) == limits)
        #expect(try JSONDecoder().decode(CacheLimits.self, from: JSONEncoder().encode(limits)) == limits)
    }

    @Test(arguments: [
        #"{"maximumSize": -1}"#, #"{"maximumValueSize": 1e300}"#, #"{"maximumAge": 1e300}"#,
        #"{"maximumEntries": 1.5}"#, #"{"minimumFree": "101%"}"#, #"{"assumeLocal": 1}"#,
    ])
    func `invalid limits in JSON are refused, and the error names them`(text: String) {
        let error = #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(CacheLimits.self, from: Data(text.utf8))
        }
        guard case .dataCorrupted(let context)? = error else {
            Issue.record("\(text): \(String(describing: error))")
            return
        }
        #expect(text.dropFirst(2).hasPrefix(context.debugDescription.prefix { $0 != " " }))
    }

    @Test func `null in JSON means no limit, and unknown names are ignored`() throws {
        let data = Data(#"{"maximumSize": null, "minimumFree": "7.5%", "later": {"a": [1]}}"#.utf8)
        var limits = CacheLimits()
        limits.minimumFree = .percent(7.5)
        #expect(try JSONDecoder().decode(CacheLimits.self, from: data) == limits)
    }

    @Test func `an invalid share of free space can be encoded but not decoded`() throws {
        let data = try JSONEncoder().encode([CacheLimits.FreeSpace.percent(1e300)])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([CacheLimits.FreeSpace].self, from: data)
        }
    }

    @Test func `any counts in the control file can be added without overflow`() throws {
        let cache = try SharedCache(at: path)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path + "/control"))
        try file.seek(toOffset: 512 * 8)
        try file.write(contentsOf: Data(repeating: 0x7f, count: 64 * 8))
        try file.close()
        let activity = try #require(try cache.directory.totals()).activity
        #expect(activity.evictions > 0 && activity.hits > 0)
        #expect(activity.ghostMisses > 0)
        _ = activity.isBelowWorkingSet
    }
}
