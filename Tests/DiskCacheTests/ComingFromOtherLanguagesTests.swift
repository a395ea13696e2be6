// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// The lines of the article "Coming from other caches" about caches of Python and JavaScript.
///
/// Also checks that every line of the article occurs in a test.
@Suite(.takesTurns) struct ComingFromOtherLanguagesTests {
    private let directory: TemporaryDirectory
    private let cache: SharedCache
    private let key = "key"
    private let data = Data("value".utf8)

    init() throws {
        directory = try TemporaryDirectory()
        cache = try SharedCache(at: directory.path + "/cache")
    }

    // MARK: python-diskcache

    @Test func `from python-diskcache`() async throws {
        let (data, path) = (data, directory.path + "/file")
        let tagged = PutOptions(expires: .seconds(500), tags: ["t"])
        try await cache.put(data, forKey: key, options: PutOptions(expires: .seconds(5), tags: ["t"]))
        try await cache.put(data, forKey: key, options: tagged)
        let entry = try await cache.get(forKey: key)?.entry
        #expect(entry?.tags == ["t"] && entry?.expires != nil)
        makeFile(path, "file")
        try await cache.put(contentsOfFile: path, forKey: key)
        var pieces = Data()
        if let chunks = try await cache.chunks(forKey: key) {
            for try await chunk in chunks { pieces += chunk }
        }
        #expect(pieces == Data("file".utf8))
        let updated = try await cache.update(forKey: key) { hit in .value((hit?.value ?? Data()) + data) }
        #expect(updated == Data("filevalue".utf8))
        let value = await cache.value(forKey: key, reading: ReadOptions(earlyRefresh: 1)) { data }
        #expect(value == Data("filevalue".utf8))
        #expect(try await cache.remove(forKey: key))
        let (keys, values) = (["1", "2", "3"], ["1": data, "2": data])
        try await cache.put(values)
        #expect(try await cache.get(forKeys: keys).count == 2)
        #expect(try await cache.remove(forKeys: keys) == 2)
        await cache.close()
    }

    @Test func `from python-diskcache: recipes`() async throws {
        let data = data
        #expect(try await cache.increment(forKey: "count") == 1)
        #expect(try await cache.increment(forKey: "count", by: -1) == 0)
        let held = try await cache.lock("name").whileHeld { 1 }
        let permitted = try await cache.lock("name", permits: 3).whileHeld { 2 }
        #expect(held == 1 && permitted == 2)
        let isAllowed =
            try await cache.increment(forKey: "calls", options: PutOptions(expires: .seconds(60))) <= 100
        #expect(isAllowed)
        let double = cache.memoized("name", of: Int.self, options: PutOptions(expires: .seconds(5))) { _ in
            data + data
        }
        #expect(try await double(1) == data + data)
    }

    private struct Average: Codable {
        var sum = 0.0
        var count = 0.0
    }

    /// Parameters of a function, whose note is not part of the key.
    private struct Parameters: Encodable {
        enum CodingKeys: CodingKey {
            case number
        }

        var number: Int
        var note: String
    }

    @Test func `from python-diskcache: averages, and parameters that memoization ignores`() async throws {
        for number in 0..<10 {
            try await cache.typed(Average.self).update(forKey: key) { hit in
                var average = hit?.value ?? Average()
                average.sum += Double(number)
                average.count += 1
                return .value(average)
            }
        }
        let average = try #require(try await cache.typed(Average.self).get(forKey: key)?.value)
        #expect(average.sum / average.count == 4.5)
        let noted = cache.memoized("name", of: Parameters.self) { Data($0.note.utf8) }
        #expect(try await noted(Parameters(number: 1, note: "first")) == Data("first".utf8))
        #expect(try await noted(Parameters(number: 1, note: "second")) == Data("first".utf8))
    }

    @Test func `from python-diskcache: insertion order, statistics of all processes, and pop`() throws {
        for key in ["first", "second"] { try cache.put(data, forKey: key) }
        let first = try cache.entries().map { try $0.get() }.min { $0.created < $1.created }
        #expect(first != nil)
        let path = directory.path + "/cache"
        let other = try SharedCache(at: path)
        #expect(try other["first"] == data)
        let activity = try cache.directory.totals()?.activity
        #expect(activity?.hits == 1 && cache.directory.activity.hits == 0)
        #expect(try cache.directory.resetTotals())
        #expect(try cache.directory.totals()?.activity.hits == 0)
        var popped: Data?
        let key = "first"
        #expect(try cache.setExpiration(.never, forKey: key))
        try cache.update(forKey: key) { hit in
            popped = hit?.value
            return nil
        }
        #expect(popped == data)
        #expect(try cache[key] == nil)
    }

    @Test func `from python-diskcache: blocking calls`() throws {
        let path = directory.path + "/other"
        let cache = try SharedCache(at: path, configuration: CacheConfiguration(maximumSize: .gibibytes(1)))
        #expect(try cache.putIfAbsent(data, forKey: key))
        #expect(try cache[key] == data)
        #expect(try cache.contains(forKey: key))
        #expect(try cache.setExpiration(.seconds(5), forKey: key))
        try cache.put(data, forKey: key, options: PutOptions(tags: ["t"]))
        let size = try cache.withDescriptor(forKey: key) { descriptor, entry in
            descriptor >= 0 ? entry.size : -1
        }
        #expect(size == data.count)
        let keys = try cache.entries().map { try $0.get().key }
        #expect(keys == [key])
        #expect(try cache.directory.statistics().entries == 1)
        #expect(try cache.directory.totals()?.usage.bytes != 0)
        #expect(cache.directory.activity.hits > 0)
        #expect(cache.directory.activity.misses >= 0)
        var options = VerifyOptions()
        options.repair = true
        #expect(try cache.directory.verify(options).isClean)
        #expect(try cache.directory.updateLimits { $0.maximumSize = .gibibytes(1) }.maximumSize != nil)
        try cache.removeAll(.tagged("t"))
        #expect(try !cache.contains(forKey: key))
        try cache.directory.collect()
        try cache.put(data, forKey: key)
        try cache.removeAll()
        #expect(try cache[key] == nil)
    }

    // MARK: cachified

    @Test func `from cachified`() async throws {
        let data = data
        #expect(await cache.value(forKey: key, options: PutOptions(expires: .seconds(600))) { data } == data)
        #expect(await cache.value(forKey: key, options: PutOptions(expires: .never)) { data } == data)
        let readings = [
            ReadOptions(staleWhileRevalidate: .seconds(Int64.max)),
            ReadOptions(staleWhileRevalidate: .seconds(60)), ReadOptions(staleIfError: .seconds(60)),
            ReadOptions(recomputes: true),
        ]
        for reading in readings { #expect(await cache.value(forKey: key, reading: reading) { data } == data) }
        let keys = [key, "other"]
        let values = try await cache.values(forKeys: keys) { missing in
            Dictionary(uniqueKeysWithValues: missing.map { ($0, Data($0.utf8)) })
        }
        #expect(values == [key: data, "other": Data("other".utf8)])
        let activity = cache.directory.activity
        #expect(activity.computations > 0)
        var events = cache.events.makeAsyncIterator()
        cache.memory.removeAll()
        let event = await events.next()
        #expect(event != nil)
    }

    /// Each outcome, with whether it returns a hit and is stored.
    @Test func `from cachified: the context`() async throws {
        let (data, forced) = (data, ReadOptions(recomputes: true))
        let outcomes: [(Computed<Data>, isThere: Bool, isKept: Bool)] = [
            (.value(data, PutOptions(expires: .seconds(600))), true, true),
            (.unchanged(PutOptions(expires: .seconds(600))), true, true),
            (.nothing(for: .seconds(600)), false, false),
            (.unkept(data), true, false),
        ]
        for (outcome, isThere, isKept) in outcomes {
            let hit = try await cache.hit(forKey: key, reading: forced) { computation in
                computation.reason == .stale ? .unkept(Data()) : outcome
            }
            #expect(hit?.value == (isThere ? data : nil))
            #expect(try await cache.get(forKey: key)?.value == (isKept ? data : nil))
        }
        // A remembered negative result answers a call that does not force a computation.
        _ = try await cache.hit(forKey: key, reading: forced) { _ in .nothing(for: .seconds(600)) }
        let hit = try await cache.hit(forKey: key) { computation in .unkept(Data(computation.key.utf8)) }
        #expect(hit == nil)
    }

    @Test func `from cachified: lock holder and metadata of a key`() throws {
        let computedBy = try cache.directory.explanation(forKey: key).computedBy
        #expect(computedBy == nil)
        try cache.put(data, forKey: key, options: PutOptions(metadata: ["traceId": "42"]))
        #expect(try cache.get(forKey: key)?.entry.metadata == ["traceId": "42"])
    }

    @Test func `from cachified: soft removal`() throws {
        let stale = ReadOptions(acceptsStale: true)
        try cache.put(data, forKey: key)
        #expect(try cache.setExpiration(.expired, staleFor: .seconds(600), forKey: key))
        #expect(try cache.get(forKey: key) == nil)
        #expect(try cache.get(forKey: key, reading: stale)?.isStale == true)
        try cache.put(data, forKey: key, options: PutOptions(tags: ["t"]))
        try cache.expireAll(.tagged("t"), staleFor: .seconds(600))
        #expect(try cache.get(forKey: key) == nil)
        #expect(try cache.get(forKey: key, reading: stale)?.isStale == true)
    }

    // MARK: The article

    @Test func `each code line of the article occurs in a test`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let root = tests.deletingLastPathComponent().deletingLastPathComponent()
        func text(_ file: String) throws -> String {
            try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
        }
        let sources = try [
            "Tests/DiskCacheTests/ComingFromOthersTests.swift",
            "Tests/DiskCacheTests/ComingFromOtherLanguagesTests.swift",
            "Tests/DiskCacheTests/ComingFromRustTests.swift",
            "IntegrationTests/Command/ComingFromBktTests.swift",
        ].map(text).joined(separator: "").filter { !$0.isWhitespace }
        var count = 0
        let rows = try text("Sources/DiskCache/DiskCache.docc/ComingFromOthers.md").split(separator: "\n")
            .filter { $0.hasPrefix("| ") && !$0.hasPrefix("| There |") }
        for row in rows {
            // The right column, without links to the documentation.
            let cells = row.dropLast(2).components(separatedBy: " | ")
            let here = try #require(cells.last).replacing(/``[^`]*``/, with: "")
            for code in here.matches(of: /`([^`]+)`/).map({ String($0.output.1) }) {
                // A function name is not a call.
                if code.contains("(_:") { continue }
                count += 1
                if code.hasPrefix("Examples/") {
                    #expect(FileManager.default.fileExists(atPath: root.path + "/" + code))
                    continue
                }
                for piece in code.split(separator: "…") {
                    let words = String(piece.filter { !$0.isWhitespace })
                    // Computed outside the expectation, which would print all of the sources.
                    let isThere = sources.contains(words)
                    #expect(isThere, "\(code)")
                }
            }
        }
        #expect(rows.count > 100 && count > rows.count)
    }
}
