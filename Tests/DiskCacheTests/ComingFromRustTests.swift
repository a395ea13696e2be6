// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// The lines of the article "Coming from other caches" about cacache and moka.
@Suite(.takesTurns) struct ComingFromRustTests {
    private struct Failed: Error {}

    private let directory: TemporaryDirectory
    private let cache: SharedCache
    private let key = "key"
    private let data = Data("value".utf8)

    init() throws {
        directory = try TemporaryDirectory()
        cache = try SharedCache(at: directory.path + "/cache")
    }

    // MARK: cacache

    @Test func `from cacache`() async throws {
        let path = directory.path + "/file"
        try await cache.put(data, forKey: key, options: PutOptions(metadata: ["foo": "bar"]))
        let digest = Digest(of: data)
        #expect(try await cache.entry(forKey: key)?.digest == digest)
        let hit = try await cache.get(forKey: key)
        #expect(hit?.value == data && hit?.entry.metadata == ["foo": "bar"])
        #expect(try await cache.copyValue(forKey: key, toFile: path)?.digest == digest)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == data)
        let object = try await cache.entry(forKey: key)?.path
        #expect(FileManager.default.isReadableFile(atPath: cache.directory.path + "/" + (object ?? "none")))
        #expect(try await cache.put(contentsOfFile: path, forKey: key).digest == digest)
        var pieces = Data()
        if let chunks = try await cache.chunks(forKey: key) {
            for try await chunk in chunks { pieces += chunk }
        }
        #expect(pieces == data)
        #expect(try await cache.remove(forKey: key))
        #expect(try await cache.get(forKey: key) == nil)
    }

    @Test func `from cacache: content by digest, and clearing`() throws {
        let pipe = Foundation.Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: data)
        try pipe.fileHandleForWriting.close()
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        let entry = try cache.put(contentsOfDescriptor: descriptor, forKey: key)
        #expect(entry.digest == Digest(of: data))
        let digest = try cache.directory.store(data)
        try cache.remove(forKey: key)
        #expect(try cache.directory.data(for: digest) == data, "the content stays until a collection")
        #expect(try cache.entries().map { try $0.get().key } == [digest.description])
        cache.memory.removeAll()
        var options = VerifyOptions()
        options.repair = true
        #expect(try cache.directory.verify(options).isClean)
        try cache.removeAll()
        try cache.directory.collect()
        #expect(try cache.directory.data(for: digest) == nil)
        let ended = try cache.directory.lastCollection()?.ended
        #expect(ended != nil)
    }

    // MARK: moka

    @Test func `from moka: capacity, weights and default expiration`() throws {
        var configuration = CacheConfiguration()
        configuration.memory.valueCost = 1
        configuration.memory.costLimit = .bytes(100)
        configuration.defaultExpiration = .days(7)
        configuration.name = "pictures"
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        #expect(try cache.directory.updateLimits { $0.maximumEntries = 100 }.maximumEntries == 100)
        for number in 0..<50 { try cache.put(data, forKey: "\(number)") }
        #expect(cache.memory.count == 50 && cache.memory.cost == 50)
        #expect(try cache.entry(forKey: "1")?.expires != nil)
        configuration.memory.countLimit = 1000
        let weighed = try SharedCache(at: directory.path + "/other", configuration: configuration)
        try weighed.put(data, forKey: key, options: PutOptions(memoryCost: 10))
        #expect(weighed.memory.cost == 10)
    }

    @Test func `from moka: time to live and time to idle`() throws {
        let clock = ManualClock()
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.now = { clock.now }
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        try cache.put(data, forKey: key, options: PutOptions(expires: .seconds(60), onAccess: .renew))
        let living = ReadOptions(maximumAge: .seconds(600))
        for _ in 0..<11 {
            clock.advance(by: 50)
            #expect(try cache.get(forKey: key, reading: living)?.value == data)
        }
        clock.advance(by: 51)
        #expect(try cache.get(forKey: key, reading: living) == nil, "it has lived long enough")
        #expect(try cache.contains(forKey: key))
        clock.advance(by: 50)
        #expect(try cache.contains(forKey: key))
        clock.advance(by: 11)
        #expect(try !cache.contains(forKey: key), "whether it was there has not renewed it")
        try cache.put(data, forKey: key, options: PutOptions(expires: .seconds(60)))
        clock.advance(by: 61)
        #expect(try cache[key] == nil)
    }

    @Test func `from moka: values computed on a miss`() async throws {
        let view = cache.typed(String.self)
        let value = "value"
        try await view.put(value, forKey: key)
        #expect(try await view.get(forKey: key)?.value == value)
        #expect(await view.value(forKey: key) { "other" } == value)
        #expect(try await cache.remove(forKey: key))
        let nothing = try await view.hit(forKey: key) { computation in .nothing(for: .zero) }
        #expect(nothing == nil)
        for attempt in 0..<2 {
            await #expect(throws: Failed.self, "the first error is the second one, too: \(attempt)") {
                try await view.value(forKey: key, reading: ReadOptions(failureMemory: .seconds(1))) {
                    if attempt == 0 { throw Failed() }
                    return value
                }
            }
        }
        var hit = try await view.hit(forKey: key, reading: ReadOptions(recomputes: true)) { computation in
            .value(value, PutOptions(expires: .seconds(60)))
        }
        #expect(hit?.source == .computed)
        hit = try await view.hit(forKey: key, reading: ReadOptions(recomputes: true)) { computation in
            guard let previous = computation.previous?.value else { return .value("new") }
            return .unkept(previous)
        }
        #expect(hit?.value == value)
        #expect(try await view.entry(forKey: key)?.expires != nil, "it is as it was")
        let updated = try await view.update(forKey: key) { hit in .value((hit?.value ?? "") + "!") }
        #expect(updated == "value!")
        #expect(try await view.update(forKey: key) { _ in .unchanged() } == "value!")
        #expect(try await view.update(forKey: key) { _ in nil } == nil)
        let decided = try await cache.hit(forKey: key) { [data] _ in
            .value(data, PutOptions(expires: .seconds(60)))
        }
        #expect(decided?.value == data)
    }

    @Test func `from moka: removals and their events`() throws {
        let causes = Locked<[MemoryRemovalCause]>([])
        var configuration = CacheConfiguration()
        configuration.onEvent = { event in
            if case .removedFromMemory(_, let cause, _, _) = event { causes.withLock { $0.append(cause) } }
        }
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        try cache.directory.updateLimits { $0.eventLogSize = .mebibytes(1) }
        try cache.put(data, forKey: key)
        try cache.put(data, forKey: key)
        var popped: Data?
        try cache.update(forKey: key) { hit in
            popped = hit?.value
            return nil
        }
        #expect(popped == data)
        #expect(causes.withLock { $0 } == [.replaced, .explicit])
        for tag in ["t", "u"] { try cache.put(data, forKey: tag, options: PutOptions(tags: [tag])) }
        try cache.removeAll(.tagged("t"))
        try cache.removeAll(.glob("*.png"))
        for entry in try cache.entries() {
            if let key = try entry.get().key, key.utf8.count == 1 { try cache.remove(forKey: key) }
        }
        #expect(try cache.entries().map { try $0.get() }.isEmpty)
        #expect(try cache.directory.removals()?.isEmpty == false)
    }
}
