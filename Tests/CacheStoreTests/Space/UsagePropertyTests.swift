// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// A file system that the tests use.
enum TriedFileSystem: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// The file system of the other tests.
    case usual
    case ext4
    /// With inodes of 128 bytes, which have no room for attributes.
    case ext4Small
    case xfs
    case btrfs
    case tmpfs

    var testDescription: String { rawValue }

    /// Mounts the file system.
    ///
    /// Returns nil for the usual one, or if this process may not mount it or lacks the program that formats it.
    func mount() throws -> Mount? {
        switch self {
        case .usual: nil
        case .ext4: try? Mount(imageOf: "ext4", megabytes: 400, ["-b", "4096", "-I", "256"])
        case .ext4Small: try? Mount(imageOf: "ext4", megabytes: 400, ["-b", "4096", "-I", "128"])
        case .xfs: try? Mount(imageOf: "xfs", megabytes: 400)
        case .btrfs: try? Mount(imageOf: "btrfs", megabytes: 400)
        case .tmpfs: try? Mount("tmpfs", options: "size=200m")
        }
    }
}

/// Random calls, after each of which the usage in the control file must equal a walk over the directory.
@Suite(.takesTurns) struct UsagePropertyTests {
    @Test(arguments: TriedFileSystem.allCases, RecordForm.both)
    func `the usage matches a full walk after each call`(system: TriedFileSystem, form: RecordForm) throws {
        let mount = try system.mount()
        if mount == nil, system != .usual { return }
        try withExtendedLifetime(mount) {
            let seed = UInt64.random(in: 0...UInt64.max)
            let calls = isSoak ? 20_000 : system == .usual ? 300 : 100
            var calling = try RandomCalls(mount?.path, form, seed: seed)
            for number in 1...calls {
                let call = try calling.next()
                var (usage, found) = try calling.usageAndWalk()
                // While Btrfs writes a file out, its status may count the file's bytes twice for a moment.
                for _ in 0..<2 where usage != found && system == .btrfs {
                    sync()
                    (usage, found) = try calling.usageAndWalk()
                }
                guard usage == found else {
                    Issue.record(
                        "\(system), \(form), seed \(seed), call \(number): \(call): \(usage) is \(found)"
                    )
                    return
                }
            }
        }
    }
}

/// Calls of three stores on one directory, two with the given record form and one with the other form.
private struct RandomCalls {
    private let directory: TemporaryDirectory
    private let path: String
    private var stores: [Store] = []
    private var random: SeededGenerator
    private var now = Timestamp.now

    init(_ base: String?, _ form: RecordForm, seed: UInt64) throws {
        directory = try TemporaryDirectory(below: base)
        path = directory.path + "/cache"
        random = SeededGenerator(seed: seed)
        // Most calls are made by the first two.
        for form in [form, form, form == .attribute ? .sidecar : .attribute] {
            stores.append(try StoreFixture.open(path, form))
        }
        let overhead = stores[0].overhead
        try stores[0].configure { (configuration) throws(CacheError) in
            configuration.limits.maximumSize = ByteCount(overhead + 4 << 20)
            configuration.limits.maximumEntries = 30
        }
        for store in stores { store.followConfiguration() }
    }

    /// Returns a random length up to `most`, usually a short one.
    private mutating func length(upTo most: Int) -> Int {
        let exponent = Double.random(in: 0...log2(Double(most)), using: &random)
        return min(most, Int(exp2(exponent)))
    }

    /// Returns one of 40 keys of 1 to 60,000 bytes.
    private mutating func key() -> String {
        let number = Int.random(in: 0..<40, using: &random)
        let length = Int(exp2(Double(number) * log2(60_000) / 39))
        return String(repeating: "k", count: max(0, length - 2)) + "\(number)"
    }

    private mutating func record(of content: Content, _ key: String) -> Record {
        var record = Record(content: content, created: now)
        record.key = key
        let room = 63_000 - key.utf8.count
        switch Int.random(in: 0..<6, using: &random) {
        case 0: record.details.metadata = ["note": String(repeating: "m", count: length(upTo: room / 2))]
        case 1: record.details.tags = ["tag", String(repeating: "t", count: length(upTo: 200))]
        case 2: record.expires = now + .seconds(Int.random(in: 1...100, using: &random))
        default: break
        }
        return record
    }

    private mutating func value() -> [UInt8] {
        // Some values recur.
        SeededGenerator.bytes(
            Bool.random(using: &random) ? length(upTo: 40) : length(upTo: 300_000),
            seed: UInt64.random(in: 0..<20, using: &random)
        )
    }

    mutating func next() throws -> String {
        now = now + .seconds(1)
        let store =
            Int.random(in: 0..<8, using: &random) == 0
            ? stores[2] : stores[Int.random(in: 0..<2, using: &random)]
        let name = key()
        let digest = Digest(ofKey: name)
        let call = Int.random(in: 0..<20, using: &random)
        do {
            switch call {
            case 0..<9:
                let bytes = value()
                try store.put(bytes.span, for: digest, record(of: Content(of: bytes.span), name))
                return "put \(bytes.count) bytes, key of \(name.utf8.count)"
            case 9:
                let bytes = value()
                makeFile(directory.path + "/source")
                try Data(bytes).write(to: URL(fileURLWithPath: directory.path + "/source"))
                let draft = record(of: Content(of: bytes.span), name)
                let source = try FileDescriptor(opening: directory.path + "/source", .readOnly)
                try store.put(store.stage(copying: source, for: digest, draft), for: digest, draft)
                return "copy \(bytes.count) bytes, key of \(name.utf8.count)"
            case 10:
                let bytes = value()
                let record = record(of: Content(of: bytes.span), name)
                _ = try store.put(bytes.span, for: digest, record, ifStill: nil)
                return "put if absent \(bytes.count) bytes, key of \(name.utf8.count)"
            case 11..<14:
                _ = try store.remove(digest, now: now)
                return "remove, key of \(name.utf8.count)"
            case 14..<17:
                guard let stored = try store.entries.read(digest), let old = stored.record else {
                    return "nothing"
                }
                let renewed = record(of: old.content, name)
                _ = try store.rewrite(renewed, for: digest, ifStill: stored, now: now)
                return "renew, key of \(name.utf8.count)"
            case 17:
                _ = try store.touch(digest) { now }
                return "touch"
            case 18:
                guard let stored = try store.entries.read(digest) else { return "nothing" }
                _ = try store.deleteEntry(digest, ifStill: stored.bytes)
                return "repair, key of \(name.utf8.count)"
            default:
                var request = SweepRequest()
                if Bool.random(using: &random) { request.limits.maximumEntries = 15 }
                _ = try Sweep.run(request, on: store, now: now)
                return "collect"
            }
        } catch let error as CacheError where error.code == .noRoom || error.code == .valueTooLarge {
            return "refused call \(call)"
        }
    }

    func usageAndWalk() throws -> (usage: StoreUsage?, found: StoreUsage) {
        var found = StoreUsage(bytes: 0, entries: 0, isCounted: true)
        for tree in ["entries", "objects"] {
            let root = try Directory(opening: path + "/" + tree)
            for shard in try root.names() {
                let files = try root.openDirectory(RelativePath(shard))
                for name in try files.names() {
                    guard let status = try files.presentStatus(of: RelativePath(name)) else { continue }
                    found.bytes += status.allocatedSize
                    if tree == "entries" { found.entries += 1 }
                }
            }
        }
        return (stores[0].control.usage, found)
    }
}
