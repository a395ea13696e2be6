// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Glibc

/// A cache with the entries that operations need.
struct Workload {
    let cache: SharedCache
    let size: Int

    /// Prepares the cache, which costs the same for any `times`, and repeats the operation.
    func run(_ operation: Operation, times: Int) throws {
        try prepare()
        if operation == .behind { try holdBackPublishing() }
        // Selected once, because the comparison of names would be counted at each repetition.
        let body = body(of: operation)
        for round in 0..<times { try body(round) }
    }

    /// Does work that a process does only once (opening locks, checking the access time), so that it is not counted.
    private func prepare() throws {
        let value = value()
        for key in ["key", "removed"] {
            try cache.put(value, forKey: key)
            guard try cache.get(forKey: key)?.value == value else { fatalError("the cache does not work") }
        }
        guard try cache.remove(forKey: "removed"), try cache.get(forKey: "absent") == nil else {
            fatalError("the cache does not work")
        }
    }

    private func value() -> Data { Data(repeating: 7, count: size) }

    /// Returns a key that is so short that it needs no allocation.
    private func key(_ round: Int) -> String { "new \(round)" }

    private func body(of operation: Operation) -> (Int) throws -> Void {
        let cache = cache
        return switch operation {
        case .get: { _ in _ = try cache.get(forKey: "key") }
        case .memoryHits:
            { _ in
                guard try cache.get(forKey: "key")?.source == .memory else {
                    fatalError("a hit from the disk")
                }
            }
        case .miss: { _ in _ = try cache.get(forKey: "absent") }
        case .missRemoved: { _ in _ = try cache.get(forKey: "removed") }
        case .touch: { _ in _ = try cache.touch(forKey: "key") }
        case .contains: { _ in _ = try cache.contains(forKey: "key") }
        case .entry: { _ in _ = try cache.entry(forKey: "key") }
        case .remove: { _ in _ = try cache.remove(forKey: "absent") }
        case .removeAll: { _ in try cache.removeAll() }
        case .lock: { _ in try cache.lock("name").unlock() }
        case .new, .overwrite, .replace, .behind, .memoryOnly, .compute, .fill: writing(operation)
        case .open, .scan, .trim: maintaining(operation)
        case .key: { round in if key(round).isEmpty { fatalError("no key") } }
        }
    }

    private func writing(_ operation: Operation) -> (Int) throws -> Void {
        let cache = cache
        let value = value()
        var fresh = value
        // Changes the bytes in place, without an allocation: after a put has returned, nothing else references them.
        func change(_ round: Int) {
            withUnsafeBytes(of: round) { fresh.replaceSubrange(0..<min(8, size), with: $0.prefix(size)) }
        }
        return switch operation {
        case .overwrite: { _ in try cache.put(value, forKey: "key") }
        case .replace:
            { round in
                change(round)
                try cache.put(fresh, forKey: "key")
            }
        case .behind:
            { round in try cache.put(value, forKey: key(round), options: PutOptions(writing: .behind)) }
        case .memoryOnly:
            { _ in try cache.put(value, forKey: "key", options: PutOptions(keeps: .memoryOnly)) }
        case .compute:
            { round in
                _ = cache.value(forKey: key(round)) { value }
            }
        case .fill: { round in try cache.put(Data("value \(round)".utf8), forKey: "fill \(round)") }
        default:
            { round in
                change(round)
                try cache.put(fresh, forKey: key(round))
            }
        }
    }

    private func maintaining(_ operation: Operation) -> (Int) throws -> Void {
        let cache = cache
        return switch operation {
        case .open:
            { _ in
                _ = try SharedCache(at: cache.path, configuration: cache.configuration)
            }
        case .trim:
            { _ in
                var options = CollectionOptions()
                options.maximumEntries = size
                _ = try cache.directory.collect(options)
            }
        default: { _ in _ = try cache.directory.collect() }
        }
    }

    /// Blocks the publication of queued values until the process ends.
    ///
    /// The publishing thread would run at random times, and its work would be counted. The first value in the queue waits
    /// for the stripe of its entry, since all stripes are locked here and never released.
    private func holdBackPublishing() throws {
        let locks = cache.path + "/locks/"
        for name in try FileManager.default.contentsOfDirectory(atPath: locks) where name.hasPrefix("entry-")
        {
            guard flock(open(locks + name, O_RDWR | O_CLOEXEC), LOCK_EX) == 0 else { fatalError("no lock") }
        }
        try cache.put(Data(), forKey: "held", options: PutOptions(writing: .behind))
    }
}
