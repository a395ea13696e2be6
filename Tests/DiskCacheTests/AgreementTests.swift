// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// The same calls return the same results wherever a value is (in memory, in the write-behind queue, on disk in either metadata
/// form) and agree with a simple model to the microsecond.
@Suite(.takesTurns) struct AgreementTests {
    /// A combination of the places where values may be.
    struct Place: CustomTestStringConvertible {
        let hasMemory: Bool
        let writing: CacheConfiguration.Writing
        let metadata: CacheConfiguration.MetadataForm

        var testDescription: String {
            "\(hasMemory ? "memory" : "no memory"), \(writing), \(metadata)"
        }

        static let all = [true, false].flatMap { memory in
            [CacheConfiguration.Writing.through, .behind].flatMap { writing in
                [CacheConfiguration.MetadataForm.automatic, .sidecar].map {
                    Place(hasMemory: memory, writing: writing, metadata: $0)
                }
            }
        }
    }

    /// The number of calls, ten times as many if `DISKCACHE_SOAK` is set.
    private static let steps = isSoak ? 1500 : 150

    @Test(arguments: Place.all, [UInt64(1), 2])
    func `random calls agree with a model of the expiration times`(place: Place, seed: UInt64) throws {
        let directory = try TemporaryDirectory()
        let clock = MicrosecondClock()
        var configuration = CacheConfiguration()
        if !place.hasMemory { configuration.memory = .none }
        configuration.writing = place.writing
        configuration.metadataForm = place.metadata
        configuration.accessGranularity = .zero
        configuration.janitor.isEnabled = false
        configuration.now = { clock.date }
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        var run = AgreementRun(cache: cache, clock: clock, seed: seed)
        for step in 0..<Self.steps {
            try run.step()
            if let difference = run.differences.first {
                let last = run.history.suffix(20).joined(separator: "\n")
                Issue.record("seed \(seed), step \(step): \(difference), after\n\(last)")
                return
            }
        }
        cache.close()
    }
}

/// A clock of whole microseconds, which a current `Date` can represent.
private final class MicrosecondClock: Sendable {
    private let microseconds = Locked<Int64>(1_700_000_000_000_000)

    var now: Int64 { microseconds.withLock { $0 } }
    var date: Date { Date(timeIntervalSince1970: Double(now) / 1e6) }

    func advance(by span: Int64) { microseconds.withLock { $0 += span } }
}

/// The expected value of a key, with times in microseconds.
private struct ModelValue: Equatable {
    var text: String
    var created: Int64
    var expires: Int64?
    var idle: Int64?
    var staleFor: Int64?
    /// The latest access recorded on disk.
    var accessed: Int64?
    var tag: String?

    /// The end of the value's life, including extensions by accesses.
    var end: Int64? {
        guard let expires else { return nil }
        guard let idle, let accessed, accessed >= created + 1000 else { return expires }
        return max(expires, accessed + idle)
    }

    func isFresh(at now: Int64) -> Bool { end.map { now < $0 } ?? true }

    func isUsable(at now: Int64) -> Bool { end.map { now < $0 + (staleFor ?? 0) } ?? true }

    static func milliseconds(_ time: Int64) -> Int64 { time / 1000 * 1000 }

    /// Sets the times as a put or a new expiration does.
    mutating func expire(after life: Int64?, sliding: Bool, now: Int64) {
        expires = life.map { max(created, Self.milliseconds(now + $0)) }
        idle = sliding ? life.map { max(1000, Self.milliseconds($0)) } : nil
    }
}

/// A sequence of calls with a model of their expected results.
private struct AgreementRun {
    let cache: SharedCache
    let clock: MicrosecondClock
    var generator: SeededGenerator
    var model: [String: ModelValue] = [:]
    var differences: [String] = []
    /// The calls so far, for failure messages.
    var history: [String] = []

    init(cache: SharedCache, clock: MicrosecondClock, seed: UInt64) {
        self.cache = cache
        self.clock = clock
        generator = SeededGenerator(seed: seed)
    }

    mutating func step() throws {
        let key = "key \(Int.random(in: 0..<4, using: &generator))"
        let choice = Int.random(in: 0..<20, using: &generator)
        history.append("\(choice) of \(key) at \(clock.now): \(model[key].map { "\($0)" } ?? "-")")
        switch choice {
        case 0...2: try put(key)
        case 3...6: try get(key, allowingStale: false)
        case 7: try get(key, allowingStale: true)
        case 8: expect("contains", key, try cache.contains(forKey: key), present(key) != nil)
        case 9: try touch(key)
        case 10: expect("remove", key, try cache.remove(forKey: key), take(key))
        case 11: try putIfAbsent(key)
        case 12: try update(key)
        case 13: try setExpiration(key)
        case 14: try entry(key)
        case 15: try list()
        case 16: try removeTagged()
        case 17: try collect()
        case 18: cache.flush()
        default: break
        }
        // Mostly near whole milliseconds, where roundings differ.
        let spans: [Int64] = [0, 0, 1, 250, 499, 500, 501, 999, 1000, 1001, 2500, 20_000, 700_000]
        clock.advance(by: spans.randomElement(using: &generator) ?? 0)
    }

    private mutating func expect<Value: Equatable>(
        _ call: String,
        _ key: String,
        _ is: Value,
        _ wanted: Value
    ) {
        if `is` == wanted { return }
        differences.append(
            "\(call) of \(key): \(`is`) instead of \(wanted); \(String(describing: model[key]))"
        )
    }

    private func present(_ key: String) -> ModelValue? {
        model[key].flatMap { $0.isFresh(at: clock.now) ? $0 : nil }
    }

    /// Removes the value from the model and returns whether it was present.
    private mutating func take(_ key: String) -> Bool {
        let isPresent = present(key) != nil
        model[key] = nil
        return isPresent
    }

    // MARK: Values

    /// Returns a random new value and the options that store it.
    private mutating func order() -> (value: ModelValue, expires: Expiration, onAccess: Expiration.OnAccess) {
        let now = clock.now
        var value = ModelValue(
            text: "value \(UInt8.random(in: 0...9, using: &generator))",
            created: ModelValue.milliseconds(now)
        )
        let isSliding = Int.random(in: 0..<3, using: &generator) == 0
        let (life, expires) = lifetime()
        value.expire(after: life, sliding: isSliding, now: now)
        if Bool.random(using: &generator) {
            value.staleFor = Int64.random(in: 0..<40_000, using: &generator) / 500 * 500
        }
        if Bool.random(using: &generator) { value.tag = "tag" }
        return (value, expires, isSliding ? .renew : .keep)
    }

    /// Returns a random lifetime in microseconds, nil for never, and the matching expiration.
    private mutating func lifetime() -> (Int64?, Expiration) {
        let lives: [Int64] = [0, 1, 999, 1000, 1500, 2000, 2999, 10_000, 25_400, 1_000_000]
        let life = lives.randomElement(using: &generator) ?? 0
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: return (nil, .never)
        case 1: return (life, .after(.microseconds(life)))
        case 2: return (life, .seconds(Double(life) / 1e6))
        default: return (life, .at(Date(timeIntervalSince1970: Double(clock.now + life) / 1e6)))
        }
    }

    private func options(_ value: ModelValue, _ expires: Expiration?, _ onAccess: Expiration.OnAccess)
        -> PutOptions
    {
        PutOptions(
            expires: expires,
            onAccess: onAccess,
            staleFor: value.staleFor.map { .microseconds($0) },
            computeTime: .milliseconds(3),
            tags: value.tag.map { [$0] } ?? []
        )
    }

    private mutating func put(_ key: String) throws {
        let (value, expires, onAccess) = order()
        try cache.put(
            value.text,
            forKey: key,
            options: options(value, expires, onAccess)
        )
        model[key] = rounded(value)
    }

    private func rounded(_ value: ModelValue) -> ModelValue {
        var value = value
        value.staleFor = value.staleFor.map(ModelValue.milliseconds)
        return value
    }

    private mutating func putIfAbsent(_ key: String) throws {
        let (value, expires, onAccess) = order()
        let isStored = try cache.putIfAbsent(
            Data(value.text.utf8),
            forKey: key,
            options: options(value, expires, onAccess)
        )
        expect("putIfAbsent", key, isStored, present(key) == nil)
        if isStored { model[key] = rounded(value) }
    }

    private mutating func update(_ key: String) throws {
        let (value, expires, onAccess) = order()
        let removes = Int.random(in: 0..<4, using: &generator) == 0
        var seen: String?
        _ = try cache.update(forKey: key, options: options(value, expires, onAccess)) {
            seen = $0.map { String(decoding: $0.value, as: UTF8.self) }
            return removes ? nil : .value(Data(value.text.utf8))
        }
        expect("update", key, seen, present(key)?.text)
        model[key] = removes ? nil : rounded(value)
    }

    private mutating func setExpiration(_ key: String) throws {
        let (life, expires) = lifetime()
        let isSliding = Bool.random(using: &generator)
        let isSet = try cache.setExpiration(expires, onAccess: isSliding ? .renew : .keep, forKey: key)
        expect("setExpiration", key, isSet, present(key) != nil)
        guard isSet else { return }
        model[key]?.expire(after: life, sliding: isSliding, now: clock.now)
        model[key]?.accessed = clock.now
    }

    // MARK: Lookups

    private mutating func get(_ key: String, allowingStale: Bool) throws {
        let now = clock.now
        let hit = try cache.get(forKey: key, reading: ReadOptions(acceptsStale: allowingStale))
        let value = model[key].flatMap {
            (allowingStale ? $0.isUsable(at: now) : $0.isFresh(at: now)) ? $0 : nil
        }
        expect("get", key, hit.map { String(decoding: $0.value, as: UTF8.self) }, value?.text)
        guard let hit, let value else { return }
        expect("get's isStale", key, hit.isStale, !value.isFresh(at: now))
        compare(hit.entry, with: value, end: value.expires, key)
        if hit.isStale { return }
        guard hit.source == .memory, let idle = value.idle else {
            model[key]?.accessed = now
            return
        }
        // An access that is not recorded on disk must not have been due. (A pending put has no file to record it in.)
        if cache.configuration.writing == .behind { return }
        expect("get from memory", key, now - (value.accessed ?? value.created) <= idle / 16, true)
    }

    /// Collects after all values with an expiration have ended: a collection advances its time by the real clock, which the test
    /// cannot predict.
    private mutating func collect() throws {
        guard Int.random(in: 0..<3, using: &generator) == 0 else { return }
        clock.advance(by: 2_000_000)
        try cache.directory.collect()
    }

    private mutating func touch(_ key: String) throws {
        expect("touch", key, try cache.touch(forKey: key), present(key) != nil)
        if present(key) != nil { model[key]?.accessed = clock.now }
    }

    private mutating func entry(_ key: String) throws {
        let entry = try cache.entry(forKey: key)
        expect("entry", key, entry != nil, present(key) != nil)
        if let entry, let value = present(key) { compare(entry, with: value, end: value.end, key) }
    }

    private mutating func compare(_ entry: CacheEntry, with value: ModelValue, end: Int64?, _ key: String) {
        func microseconds(_ date: Date?) -> Int64? {
            date.map { Int64(($0.timeIntervalSince1970 * 1e6).rounded()) }
        }
        expect("created", key, microseconds(entry.created), value.created)
        expect("expires", key, microseconds(entry.expires), end)
        expect("extendsOnAccess", key, entry.extendsOnAccess, value.idle.map { .microseconds($0) })
        expect("staleFor", key, entry.staleFor, value.staleFor.map { .microseconds($0) })
        expect(
            "staleUntil",
            key,
            microseconds(entry.staleUntil),
            end.flatMap { end in value.staleFor.map { end + $0 } }
        )
        expect("tags", key, entry.tags, value.tag.map { [$0] } ?? [])
        // 3 ms, to the precision of one byte.
        expect("cost", key, entry.computeTime, .microseconds(3072))
    }

    private mutating func list() throws {
        let listed = Set(try cache.entries().compactMap { try $0.get().key })
        expect("entries", "", listed, Set(model.keys.filter { present($0) != nil }))
    }

    private mutating func removeTagged() throws {
        let tagged = model.filter { $0.value.tag != nil }.map(\.key)
        let count = tagged.filter { present($0) != nil }.count
        let listed = try cache.entries(.tagged("tag")).map { try $0.get() }
        expect("entries(.tagged)", "", listed.count, count)
        try cache.removeAll(.tagged("tag"))
        for key in tagged { model[key] = nil }
    }
}
