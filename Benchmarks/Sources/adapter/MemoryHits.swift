// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// Reads values that are all in this process's memory, with one thread and with two.
///
/// As the limit and the peers have it: 100,000 keys in random order, values of 64 bytes, the clock read once in
/// 64 gets, the length of each value looked at. All values have an expiration, which each get checks, as it
/// checks that no process has changed the value. Before and after, every value is checked whole.
struct MemoryHits {
    private static let batch = 64
    private static let valueSize = 64
    private let options: Options
    private let keys: [String]

    init(_ options: Options) {
        var options = options
        options.size = Self.valueSize
        if options.workload.isEmpty { options.workload = "W10" }
        self.options = options
        keys = Keys.all(options.count)
    }

    func run() throws {
        let cache = try SharedCache(
            at: options.directory,
            configuration: options.variant.configuration(isSynced: false)
        )
        try load(cache)
        for threads in 1...2 { try measure(cache, threads: threads) }
    }

    /// Gets all values into memory, and on disk where they are not there.
    private func load(_ cache: SharedCache) throws {
        var values = Values(size: options.size)
        for index in keys.indices where try cache.get(forKey: keys[index]) == nil {
            try cache.put(values.next(index), forKey: keys[index], options: PutOptions(expires: .days(1)))
        }
        // Putting one value makes those that share its generation be read again.
        for index in keys.indices { _ = try cache.get(forKey: keys[index]) }
        try check(cache)
    }

    /// Every value comes from memory, expires some time, and is right.
    private func check(_ cache: SharedCache) throws {
        for index in keys.indices {
            guard let hit = try cache.get(forKey: keys[index]), hit.source == .memory,
                hit.entry.expires != nil, Values.isRight(hit.value, size: options.size, index)
            else { throw Options.Failure(description: "\(keys[index]) is wrong or not in memory") }
        }
    }

    private func measure(_ cache: SharedCache, threads: Int) throws {
        // Later than all threads need to be there.
        let begin = now() + 20_000_000
        let running = (0..<threads).map { index in
            Thread { [self] in Result { try read(cache, thread: index, from: begin) } }
        }
        var result = Measurement()
        for thread in running { result.merge(try thread.join().get()) }
        try check(cache)
        var line = ResultLine(options)
        line.op = "mem_hit"
        line.threads = threads
        line.set(result, withHistogram: false)
        // Each step of the histogram is a batch.
        line.ops = UInt64(result.hits)
        let elapsed = Double(result.end - result.begin)
        line.mean_ns = elapsed * Double(threads) / Double(result.hits)
        line.ops_per_s = Double(result.hits) / elapsed * 1e9
        try line.write()
    }

    private func read(_ cache: SharedCache, thread: Int, from begin: UInt64) throws -> Measurement {
        let order = Order.permutation(keys.count, seed: UInt64(thread) &* 7 &+ options.seed)
        var result = Measurement()
        while now() < begin {}
        result.begin = now()
        let end = result.begin + UInt64(options.seconds * 1e9)
        var previous = result.begin
        var position = 0
        var bytes = 0
        while previous < end {
            for _ in 0..<Self.batch {
                bytes += try cache.get(forKey: keys[order[position]])?.value.count ?? 0
                position = position + 1 == order.count ? 0 : position + 1
            }
            result.hits += Self.batch
            let time = now()
            result.histogram.record((time - previous) / UInt64(Self.batch))
            previous = time
        }
        result.end = previous
        if bytes != result.hits * options.size { result.errors += 1 }
        return result
    }
}
