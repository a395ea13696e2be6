// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform

/// One thread of a worker, which executes and records operations that a seed determines.
final class WorkerThread {
    let order: WorkerOrder
    let thread: Int
    let cache: SharedCache
    private var generator: SplitMix64
    private var log: OperationLog
    private var written = 0
    /// The log numbers of background puts that may not be published yet.
    private var unflushed: [Int] = []
    private var kept: [Int: (number: UInt64, since: UInt64)] = [:]

    init(_ order: WorkerOrder, thread: Int, cache: SharedCache) throws {
        self.order = order
        self.thread = thread
        self.cache = cache
        generator = SplitMix64(seed: order.seed &+ UInt64(thread))
        // More operations than a worker executes in a minute.
        log = try OperationLog(creating: order.log(ofThread: thread), capacity: 4_000_000)
    }

    /// Executes operations until `isStopped` returns true, or the log is full.
    func run(until isStopped: () -> Bool) throws {
        if order.role == .claimant { return try claim() }
        while !isStopped() && !log.isFull {
            if order.role == .collector {
                try collect()
                continue
            }
            if order.role == .counter {
                try count()
                continue
            }
            let key = randomKey()
            if Int.random(in: 0..<100, using: &generator) < order.role.writeShare {
                try change(key)
            } else {
                try read(key)
            }
        }
        flush()
    }

    /// Returns a key; half of the time one of the first four, so that several threads often use the same keys.
    private func randomKey() -> Int {
        let isHot = Bool.random(using: &generator)
        return .random(in: 0..<(isHot ? 4 : UniqueValues.keys.count), using: &generator)
    }

    private func collect() throws {
        var options = CollectionOptions()
        // So few that each collection must evict some keys, with or without sidecars.
        options.maximumEntries = UniqueValues.keys.count * 3 / 4
        try cache.directory.collect(options)
        usleep(2000)
    }

    // MARK: Atomicity

    private func count() throws {
        let number = log.append(OperationLog.Entry(kind: .write, key: 0, start: OperationLog.now))
        try cache.update(forKey: UniqueValues.counter) { old in
            let count = old.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
            return .value(Data("\(count + 1)".utf8))
        }
        log.end(number)
    }

    private func claim() throws {
        for (key, name) in UniqueValues.keys.enumerated() {
            try write(key) { try cache.putIfAbsent($0, forKey: name) }
        }
    }

    // MARK: Reading

    private func read(_ key: Int) throws {
        let start = OperationLog.now
        if order.role == .forgetful, let copy = kept[key], start < copy.since + 1_000_000 {
            let entry = OperationLog.Entry(
                kind: .read,
                key: key,
                value: copy.number,
                start: start,
                end: start
            )
            log.append(entry)
            return
        }
        let hit = try cache.get(forKey: UniqueValues.keys[key])
        var entry = OperationLog.Entry(kind: .miss, key: key, start: start, end: OperationLog.now)
        if let hit { note(hit.value, in: &entry, as: .read) }
        if let hit { entry.tier = hit.source == .disk ? .disk : .memory }
        log.append(entry)
        if order.role == .forgetful { kept[key] = hit == nil ? nil : (entry.value, start) }
    }

    /// Records the number of a value, or that the value is damaged.
    private func note(_ data: Data, in entry: inout OperationLog.Entry, as kind: OperationLog.Kind) {
        if let number = UniqueValues.number(of: data, key: entry.key) {
            entry.kind = kind
            entry.value = number
        } else {
            entry.kind = .damaged
        }
    }

    // MARK: Writing

    private func newNumber() -> UInt64 {
        written += 1
        return UniqueValues.number(worker: order.number, thread: thread, count: written)
    }

    private func change(_ key: Int) throws {
        if order.role == .flights, Bool.random(using: &generator) { return try look(at: key) }
        let name = UniqueValues.keys[key]
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<45:
            try write(key) {
                try cache.put($0, forKey: name); return true
            }
        case 45..<54: try remove(key)
        case 54: try removeMany()
        case 55..<65: try write(key) { try cache.putIfAbsent($0, forKey: name) }
        case 65..<80: try update(key)
        case 80..<90:
            // Does not change the value, so it is not recorded.
            try cache.setExpiration(.seconds(3600), forKey: name)
        default: try read(key)
        }
    }

    /// Computes a value, or publishes one in the background, with reads before and after a change.
    ///
    /// A thread that has read a value, and then removed or replaced it, must not read that value again.
    private func look(at key: Int) throws {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: compute(key)
        case 1:
            try read(key)
            try remove(key)
            compute(key)
        case 2:
            try putBehind(key)
            for _ in 0..<4 { try read(key) }
        default:
            try update(key)
            try read(key)
        }
    }

    private func remove(_ key: Int) throws {
        let number = log.append(OperationLog.Entry(kind: .remove, key: key, start: OperationLog.now))
        try cache.remove(forKey: UniqueValues.keys[key])
        log.end(number)
    }

    /// Removes or expires all keys with a prefix in one step, which is recorded as a removal of each key.
    private func removeMany() throws {
        let prefix = ["key:1", "key:2", "pair:"][.random(in: 0..<3, using: &generator)]
        let start = OperationLog.now
        let numbers = UniqueValues.keys.enumerated().filter { $1.hasPrefix(prefix) }.map { key, _ in
            log.append(OperationLog.Entry(kind: .remove, key: key, start: start))
        }
        if Bool.random(using: &generator) {
            try cache.removeAll(.prefix(prefix))
        } else {
            try cache.expireAll(.prefix(prefix))
        }
        for number in numbers { log.end(number) }
    }

    /// Writes a new value with `body`, which returns whether it was stored.
    private func write(_ key: Int, _ body: (Data) throws -> Bool) throws {
        let value = newNumber()
        let data = UniqueValues.value(value, key: key)
        let entry = OperationLog.Entry(kind: .write, key: key, value: value, start: OperationLog.now)
        let number = log.append(entry)
        if try body(data) { log.end(number) } else { log.cancel(number) }
    }

    /// Reads and replaces a value atomically, which is recorded as a read and a write.
    private func update(_ key: Int) throws {
        var seen: OperationLog.Entry?
        let start = OperationLog.now
        try write(key) { data in
            try cache.update(forKey: UniqueValues.keys[key]) { old in
                var entry = OperationLog.Entry(kind: .miss, key: key, start: start, end: OperationLog.now)
                if let old { note(old.value, in: &entry, as: .replaced) }
                seen = entry
                return .value(data)
            }
            return true
        }
        if let seen { log.append(seen) }
    }

    /// Queues a new value, and sometimes flushes all queued values.
    private func putBehind(_ key: Int) throws {
        let value = newNumber()
        let entry = OperationLog.Entry(kind: .behind, key: key, value: value, start: OperationLog.now)
        unflushed.append(log.append(entry))
        try cache.put(
            UniqueValues.value(value, key: key),
            forKey: UniqueValues.keys[key],
            options: PutOptions(writing: .behind)
        )
        if unflushed.count >= Int.random(in: 1...8, using: &generator) { flush() }
    }

    private func flush() {
        if unflushed.isEmpty { return }
        cache.flush()
        for number in unflushed { log.end(number) }
        unflushed = []
    }

    /// Gets a value and computes it if it is missing, which is recorded as one write or one read.
    private func compute(_ key: Int) {
        let value = newNumber()
        let data = UniqueValues.value(value, key: key)
        let start = OperationLog.now
        let number = log.append(OperationLog.Entry(kind: .computed, key: key, value: value, start: start))
        let (found, isComputed) = Flights.value(
            of: UniqueValues.keys[key],
            in: cache,
            orCompute: data,
            within: .random(in: 0...200, using: &generator),
            by: Flights.Form.allCases.randomElement(using: &generator) ?? .value
        )
        if isComputed { log.end(number) } else { log.cancel(number) }
        if isComputed && found == data { return }
        var entry = OperationLog.Entry(kind: .flight, key: key, start: start, end: OperationLog.now)
        note(found, in: &entry, as: .flight)
        log.append(entry)
    }
}
