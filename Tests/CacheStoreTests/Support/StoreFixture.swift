// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// A store in a new directory, with shorthands for the operations of the tests.
final class StoreFixture: Sendable {
    let directory: TemporaryDirectory
    let store: Store
    let path: String

    init(
        _ form: RecordForm = .attribute,
        granularity: Duration = .zero,
        assuming capabilities: Capabilities? = nil
    ) throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/cache"
        store = try Self.open(path, form, granularity, capabilities)
    }

    static func open(
        _ path: String,
        _ form: RecordForm = .attribute,
        _ granularity: Duration = .zero,
        _ capabilities: Capabilities? = nil
    ) throws -> Store {
        var options = StoreOptions()
        options.recordForm = form
        options.accessGranularity = granularity
        options.assumedCapabilities = capabilities
        return try Store(at: path, options: options)
    }

    func record(_ value: String, created: Timestamp = .now) -> Record {
        Record(content: Content(of: Array(value.utf8).span), created: created)
    }

    func put(_ value: String, _ key: String, expires: Timestamp? = nil) throws {
        var record = record(value)
        record.expires = expires
        record.key = key
        try store.put(Array(value.utf8).span, for: Digest(ofKey: key), record)
    }

    func get(_ key: String, now: Timestamp = .now) throws -> String? {
        try store.get(Digest(ofKey: key), now: now, allowingStale: false)
            .map { String(decoding: $0.value, as: UTF8.self) }
    }

    @discardableResult
    func sweep(now: Timestamp = .now, _ change: (inout SweepRequest) -> Void = { _ in }) throws
        -> CollectionReport
    {
        var request = SweepRequest()
        change(&request)
        return try Sweep.run(request, on: store, now: now)
    }

    func objectPath(_ value: String) -> String {
        path + "/objects/" + StoreLayout.path(of: Digest(of: Array(value.utf8).span)).description
    }

    func entryPath(_ key: String) -> String {
        path + "/entries/" + StoreLayout.path(of: Digest(ofKey: key)).description
    }

    /// Overwrites a file in place, as a failing disk would.
    func damage(_ path: String, _ bytes: [UInt8]) throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.write(contentsOf: bytes)
        try handle.close()
    }

    /// Changes the bytes of a record in place, in either form.
    func changeRecord(of key: String, _ change: (inout [UInt8]) -> Void) throws {
        var bytes = try #require(try store.entries.read(Digest(ofKey: key))?.bytes)
        change(&bytes)
        guard store.directory.capabilities.attributes == .writable else {
            return try Data(bytes).write(to: URL(fileURLWithPath: entryPath(key)))
        }
        let path = StoreLayout.path(of: Digest(ofKey: key))
        try store.directory.entries.setAttribute("user.dc", of: path, to: bytes.span)
    }

    /// Returns the usage on disk, by a walk over all entries and objects.
    func usageOnDisk() -> StoreUsage { StoreUsage(onDisk: path) }

    var objects: [String] { directory.files(below: "cache/objects") }
    var entries: [String] { directory.files(below: "cache/entries") }
    var temporaries: [String] { directory.files(below: "cache/tmp") }
}

extension Verification {
    /// Verifies the whole store.
    @discardableResult
    static func run(on store: Store, isRepairing: Bool) throws(CacheError) -> VerifyReport {
        var options = VerifyOptions()
        options.repair = isRepairing
        return try run(options, on: store)
    }
}

extension RecordForm {
    static let both: [RecordForm] = [.attribute, .sidecar]
}

extension Store {
    /// Removes a key at the current time.
    func remove(_ key: Digest, name: String? = nil) throws(CacheError) -> Bool {
        try remove(key, now: .now, name: name)
    }
}

extension StoreUsage {
    /// Computes the usage of the cache at `path`, by a walk over all entries and objects.
    init(onDisk path: String) {
        self.init(bytes: 0, entries: 0, isCounted: true)
        for tree in ["entries", "objects"] {
            forEachFile(below: path + "/" + tree) { status in
                guard status.kind != .directory else { return }
                bytes += status.allocatedSize
                if tree == "entries" { entries += 1 }
            }
        }
    }
}

/// Returns the allocated size of everything at `path`, as du(1) counts it.
func allocatedSize(at path: String) -> Int64 {
    var sum = (try? FileStatus.ofLink(path))?.allocatedSize ?? 0
    forEachFile(below: path) { sum += $0.allocatedSize }
    return sum
}

/// Calls `body` with the status of each file below `path`, except files deleted meanwhile.
private func forEachFile(below path: String, _ body: (FileStatus) -> Void) {
    for name in FileManager.default.enumerator(atPath: path) ?? FileManager.DirectoryEnumerator() {
        guard let name = name as? String, let status = try? FileStatus.ofLink(path + "/" + name) else {
            continue
        }
        body(status)
    }
}
