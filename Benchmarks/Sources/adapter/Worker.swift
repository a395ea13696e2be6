// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// One thread that reads or writes.
struct Worker {
    /// Draws of a mixed workload, which are repeated: as many as the other adapters have.
    private static let drawCount = 1 << 18

    /// So many keys `put_more` puts that were not there before, others for each seed.
    private static let moreCount = 2000

    private let options: Options
    private let cache: SharedCache
    private let keys: [String]
    private let order: [Int]
    private let seed: UInt64
    private var values: Values
    private var result = Measurement()

    /// - Parameters:
    ///   - index: which worker this is, of `count`: seeds its order, and tells which keys it puts.
    init(_ options: Options, _ cache: SharedCache, _ keys: [String], index: Int, of count: Int) {
        self.options = options
        self.cache = cache
        self.keys = keys
        values = Values(size: options.size)
        seed = options.seed &* 131 &+ UInt64(index)
        switch options.operation {
        case .mixed:
            order = Order.zipf(options.count, length: Self.drawCount, seed: seed)
        case .putNew, .putOver:
            let all = Order.permutation(options.count, seed: options.seed &* 131 &+ 999)
            order = Array(all[(options.count * index / count)..<(options.count * (index + 1) / count)])
        case .putMore:
            let first = options.count + Int(options.seed) * Self.moreCount
            order = Order.permutation(Self.moreCount, seed: options.seed &* 131 &+ 999).map { first + $0 }
        default:
            order = Order.permutation(options.count, seed: seed)
        }
    }

    /// How many keys the workers of this operation use.
    static func keyCount(_ options: Options) -> Int {
        switch options.operation {
        case .getMiss: 2 * options.count
        case .putMore: options.count + (Int(options.seed) + 1) * moreCount
        default: options.count
        }
    }

    /// Reads for a moment, as every adapter does: what is measured is a cache in use.
    func prepare() throws {
        guard options.operation == .getHit || options.operation == .mixed else { return }
        let end = now() + options.warmUpMilliseconds * 1_000_000
        for (position, index) in order.prefix(options.count).enumerated() {
            _ = try cache.get(forKey: keys[index])
            if position & 63 == 0, now() > end { break }
        }
    }

    mutating func run() -> Measurement {
        let processorTime = ProcessorTime.current
        let begin = now()
        result.begin = begin
        switch options.operation {
        case .getHit: get(from: begin, expecting: true)
        case .getMiss: get(from: begin, expecting: false)
        case .mixed: mix(from: begin)
        default: put(from: begin)
        }
        result.processorTime = ProcessorTime.current - processorTime
        return result
    }

    /// Keys that were removed are asked for once each: a second time their absence would be known, and the disk
    /// not be asked.
    private mutating func get(from begin: UInt64, expecting isThere: Bool) {
        let end = begin + UInt64(options.seconds * 1e9)
        let offset = isThere ? 0 : options.count
        var previous = begin
        repeat {
            for index in order {
                let hit = read(index + offset)
                let time = now()
                result.histogram.record(time - previous)
                previous = time
                if isThere { check(hit, index) } else { expectNone(hit) }
                if time >= end { break }
            }
        } while previous < end && options.variant != .removed
        result.end = previous
    }

    /// Making the value is not timed.
    private mutating func put(from begin: UInt64) {
        let end = begin + UInt64(options.cap * 1e9)
        result.end = begin
        for index in order {
            let value = values.next(index)
            let start = now()
            write(value, index)
            let time = now()
            result.histogram.record(time - start)
            result.end = time
            if time >= end { break }
        }
    }

    /// Nine gets to a put; making the value belongs to the put.
    private mutating func mix(from begin: UInt64) {
        let end = begin + UInt64(options.seconds * 1e9)
        var random = SplitMix(state: seed &* 77)
        var previous = begin
        var position = 0
        while previous < end {
            let index = order[position & (Self.drawCount - 1)]
            position += 1
            if random.next() % 10 == 0 {
                write(values.next(index), index)
            } else {
                check(read(index), index)
            }
            let time = now()
            result.histogram.record(time - previous)
            previous = time
        }
        result.end = previous
    }

    @inline(__always)
    private mutating func read(_ index: Int) -> CacheHit<Data>? {
        do throws(CacheError) {
            return try cache.get(forKey: keys[index])
        } catch {
            fail(error)
            return nil
        }
    }

    @inline(__always)
    private mutating func write(_ value: Data, _ index: Int) {
        do throws(CacheError) {
            try cache.put(value, forKey: keys[index])
        } catch {
            fail(error)
        }
    }

    @inline(__always)
    private mutating func check(_ hit: CacheHit<Data>?, _ index: Int) {
        guard let hit else {
            result.misses += 1
            return
        }
        if Values.isRight(hit.value, size: options.size, index) {
            result.hits += 1
        } else {
            result.errors += 1
        }
    }

    @inline(__always)
    private mutating func expectNone(_ hit: CacheHit<Data>?) {
        if hit == nil { result.misses += 1 } else { result.errors += 1 }
    }

    private mutating func fail(_ error: CacheError) {
        if result.errors == 0 { complain("adapter: \(options.operation.rawValue): \(error)") }
        result.errors += 1
    }
}
