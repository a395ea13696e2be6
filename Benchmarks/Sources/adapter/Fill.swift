// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Synchronization

/// Makes the directory that is measured afterwards.
struct Fill {
    private let options: Options

    init(_ options: Options) {
        self.options = options
    }

    /// Puts all keys; for the variant `removed` puts and removes as many more.
    func run() throws {
        let cache = try SharedCache(
            at: options.directory,
            configuration: options.variant.configurationForMaintenance()
        )
        var values = Values(size: options.size)
        let begin = now()
        for index in Order.permutation(options.count, seed: 5) {
            try cache.put(values.next(index), forKey: Keys.key(index))
        }
        if options.variant == .removed {
            for index in options.count..<(2 * options.count) {
                try cache.put(values.next(index), forKey: Keys.key(index))
                _ = try cache.remove(forKey: Keys.key(index))
            }
        }
        try report(since: begin)
    }

    /// Puts all keys as if they had been used at different times, in random order: half of them more than two
    /// hours ago, the others in the last quarter of an hour.
    func runWithAccessTimes() throws {
        let clock = SettableClock()
        var configuration = options.variant.configurationForMaintenance()
        configuration.now = { clock.date }
        let cache = try SharedCache(at: options.directory, configuration: configuration)
        var values = Values(size: options.size)
        let begin = now()
        let present = Date()
        for (index, rank) in Order.permutation(options.count, seed: 77).enumerated() {
            clock.date = present - Self.age(rank: rank, of: options.count)
            try cache.put(values.next(index), forKey: Keys.key(index))
            // The file system has noted the present as the file's last access.
            _ = try cache.touch(forKey: Keys.key(index))
        }
        try report(since: begin)
    }

    private static func age(rank: Int, of count: Int) -> Double {
        let seconds = rank < count / 2 ? 7200 + (count - rank) / 100 : 600 + (count - rank) / 1000
        return Double(seconds) - Double(rank % 100) / 100
    }

    private func report(since begin: UInt64) throws {
        var line = ResultLine(options)
        line.entries = options.count
        line.seconds = Double(now() - begin) / 1e9
        try line.write()
    }
}

/// A clock that stands where it is put.
private final class SettableClock: Sendable {
    private let value = Mutex(Date())

    var date: Date {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}
