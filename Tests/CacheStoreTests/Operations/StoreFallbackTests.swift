// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

/// The same guarantees on file systems that lack a feature.
@Suite(.takesTurns) struct StoreFallbackTests {
    private static let lacking = [
        Capabilities(attributes: .writable, unnamedFiles: false),
        Capabilities(attributes: .absent, unnamedFiles: true),
        Capabilities(attributes: .absent, unnamedFiles: false),
    ]

    @Test(arguments: lacking)
    func `values are stored, shared, replaced, removed and swept`(capabilities: Capabilities) throws {
        let fixture = try StoreFixture(assuming: capabilities)
        try fixture.put("one", "a")
        try fixture.put("one", "b")
        #expect(fixture.objects.count == 1)
        try fixture.put("two", "a")
        #expect(try fixture.get("a") == "two")
        #expect(try fixture.get("b") == "one")
        #expect(try fixture.store.remove(Digest(ofKey: "b")))
        #expect(try fixture.get("b") == nil)
        #expect(fixture.temporaries.isEmpty)
        let report = try fixture.sweep()
        #expect(report.removed[.orphan]?.count == 1)
        #expect(fixture.objects.count == 1 && fixture.entries.count == 1)
        #expect(try Verification.run(on: fixture.store, isRepairing: false).isClean)
    }

    @Test func `before Linux 6.13, a foreign file in place of an entry is a replaceable miss`() async {
        await #expect(processExitsWith: .success) {
            KernelSupport.hasAttributeCallsAt.store(false, ordering: .relaxed)
            let fixture = try StoreFixture()
            try fixture.put("other", "other")
            let makers: [(String) -> Int32] = [
                { mkfifo($0, 0o600) }, { symlink($0, $0) }, { symlink("/nowhere", $0) },
                { mknod($0, S_IFSOCK | 0o600, 0) }, { mkdir($0, 0o700) },
            ]
            for (number, make) in makers.enumerated() {
                try fixture.put("value", "key")
                let path = fixture.entryPath("key")
                try FileManager.default.removeItem(atPath: path)
                try #require(make(path) == 0)
                #expect(try fixture.get("key") == nil)
                #expect(try fixture.sweep().unreadable.isEmpty)
                // A put does not replace a directory.
                guard number + 1 < makers.count else { continue }
                try fixture.put("value", "key")
                #expect(try fixture.get("key") == "value")
            }
            #expect(try fixture.get("other") == "other")
        }
    }

    @Test(arguments: lacking)
    func `a file is stored, and an unusable object is replaced`(capabilities: Capabilities) throws {
        let fixture = try StoreFixture(assuming: capabilities)
        let path = fixture.directory.path + "/in"
        makeFile(path, "value")
        let source = try FileDescriptor(opening: path, .readOnly)
        let key = Digest(ofKey: "key")
        let staged = try fixture.store.stage(copying: source, for: key, fixture.record(""))
        let record = Record(content: staged.content, created: .now)
        try fixture.store.put(staged, for: key, record)
        #expect(try fixture.get("key") == "value")
        // The same bytes are counted once.
        let used = try #require(fixture.store.control.usage).bytes
        try source.rewind()
        let again = try fixture.store.stage(copying: source, for: key, fixture.record(""))
        try fixture.store.put(again, for: key, record)
        #expect(fixture.store.control.usage?.bytes == used)
        try fixture.damage(fixture.objectPath("value"), Array("longer than that".utf8))
        try fixture.put("value", "other")
        #expect(try fixture.get("key") == "value")
        #expect(fixture.temporaries.isEmpty)
    }

    @Test(arguments: lacking)
    func `after many new objects an existing one is kept and counted once`(
        capabilities: Capabilities
    ) throws {
        let fixture = try StoreFixture(assuming: capabilities)
        for number in 0..<20 { try fixture.put("value \(number)", "key \(number)") }
        let object = try FileStatus.of(fixture.objectPath("value 3")).identity
        let used = try #require(fixture.store.control.usage).bytes
        try fixture.put("value 3", "key 3")
        #expect(fixture.store.control.usage?.bytes == used)
        if !capabilities.unnamedFiles {
            #expect(try FileStatus.of(fixture.objectPath("value 3")).identity == object)
        }
    }

    @Test(arguments: RecordForm.both)
    func `a durable store works the same`(form: RecordForm) throws {
        let directory = try TemporaryDirectory()
        var options = StoreOptions()
        options.isDurable = true
        options.recordForm = form
        let store = try Store(at: directory.path + "/cache", options: options)
        let key = Digest(ofKey: "key")
        for value in ["one", "two", "two"] {
            let bytes = Array(value.utf8)
            try store.put(bytes.span, for: key, Record(content: Content(of: bytes.span), created: .now))
            #expect(try store.get(key, now: .now, allowingStale: false)?.value == Data(bytes))
        }
    }

    /// The first attempt may have failed because the name could not be written to the medium.
    @Test func `a durable put of a file synchronizes the object again if the entry did not fit at first`()
        throws
    {
        let directory = try TemporaryDirectory()
        var options = StoreOptions()
        options.isDurable = true
        let store = try Store(at: directory.path + "/cache", options: options)
        makeFile(directory.path + "/in", "value")
        let key = Digest(ofKey: "key")
        let draft = Record(content: Content(digest: key, length: 0, checksum: 0), created: .now)
        let source = try FileDescriptor(opening: directory.path + "/in", .readOnly)
        var staged = Optional(try store.stage(copying: source, for: key, draft))
        let record = Record(content: Content(of: Array("value".utf8).span), created: .now)
        // The collection that makes space can't delete the object.
        let other = try Store(at: directory.path + "/cache")
        let lock = try other.objects.stripes.lock(.shared, stripe: record.content.digest.stripe)
        // The object has its name, and the entry can't be created: the calls since then.
        let calls = Locked<[SystemCall]?>.Box(nil)
        let isLinked = Locked<Bool>.Box(false)
        try SystemCall.withFaults({ call in
            calls.value.withLock { $0?.append(call) }
            if call == .link { isLinked.value.withLock { $0 = true } }
            guard call == .open, isLinked.value.withLock({ $0 }) else { return nil }
            return calls.value.withLock { calls in
                if calls != nil { return nil }
                calls = []
                return .error(.noSpace)
            }
        }) {
            if let staged = staged.take() { try store.put(staged, for: key, record) }
        }
        lock.release()
        let made = try #require(calls.value.withLock { $0 })
        let commit = try #require(made.lastIndex(of: .setAttribute))
        let isSynchronized = made[..<commit].contains(.synchronize)
        #expect(isSynchronized)
        #expect(try store.get(key, now: .now, allowingStale: false)?.value == Data("value".utf8))
    }

    @Test func `a process that cannot set attributes still reads them`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        let confined = Capabilities(attributes: .readable, unnamedFiles: true)
        let store = try StoreFixture.open(fixture.path, .attribute, .zero, confined)
        let key = Digest(ofKey: "key")
        #expect(try store.get(key, now: .now, allowingStale: false)?.value == Data("value".utf8))
        _ = try Sweep.run(SweepRequest(), on: store, now: .now)
        #expect(try fixture.get("key") == "value")
        let bytes = Array("new".utf8)
        try store.put(bytes.span, for: key, fixture.record("new"))
        #expect(try fixture.get("key") == "new")
    }

    @Test func `an entry that may not be opened is an error, not damage`() throws {
        let fixture = try StoreFixture(assuming: Capabilities(attributes: .absent, unnamedFiles: true))
        try fixture.put("value", "key")
        let refused = #expect(throws: CacheError.self) {
            try SystemCall.withFaults({ $0 == .open ? .error(.notPermitted) : nil }) {
                try fixture.store.entries.read(Digest(ofKey: "key"))
            }
        }
        #expect(refused?.code == .permissionDenied)
        #expect(try fixture.get("key") == "value")
    }

    @Test func `a record with an absurd length is a miss`() throws {
        let fixture = try StoreFixture()
        var record = fixture.record("value")
        try fixture.put("value", "key")
        record.content = Content(digest: record.content.digest, length: Int.max - 1, checksum: 0)
        let bytes = record.encoded(for: Digest(ofKey: "key"))
        try fixture.changeRecord(of: "key") { $0 = bytes }
        #expect(try fixture.get("key") == nil)
    }

    @Test func `a pipe, directory or link in place of an object is a miss and does not block`() throws {
        let fixture = try StoreFixture()
        let makers: [(String) -> Bool] = [
            { mkfifo($0, 0o600) == 0 }, { mkdir($0, 0o700) == 0 }, { symlink("/etc/hostname", $0) == 0 },
        ]
        for make in makers {
            try fixture.put("value", "key")
            let path = fixture.objectPath("value")
            try FileManager.default.removeItem(atPath: path)
            #expect(make(path))
            #expect(try fixture.get("key") == nil)
            let isFound = try fixture.store.open(Digest(ofKey: "key"), now: .now, allowingStale: false) != nil
            #expect(!isFound)
            #expect(try fixture.store.data(for: Digest(of: Array("value".utf8).span)) == nil)
            _ = rmdir(path)
            _ = unlink(path)
        }
    }
}
