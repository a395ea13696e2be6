// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// The parameters of `diskcache bench`; the workers get them as JSON.
struct BenchPlan: Codable, Sendable {
    var workers = 4
    var seconds = 5.0
    /// The total number of operations after which the benchmark stops; nil to stop after a time.
    var operations: Int?
    var size = 4096
    var keys = 1000
    /// The percentage of puts; ``removals`` is the percentage of removals, and the rest are gets.
    var puts = 10
    var removals = 0
    /// The percentage of puts that store a value that was stored before.
    var repeats = 0
    var isCollecting = false
    /// The time between two kills; nil to kill no process.
    var killSeconds: Double?

    /// Creates a plan with the defaults.
    init() {}

    init(_ arguments: Arguments) throws(Failure) {
        workers = try arguments.count("workers", in: 1...256) ?? workers
        seconds = try arguments.value("seconds", as: Self.seconds) ?? seconds
        operations = try arguments.count("operations", in: 1...1_000_000_000)
        size = try arguments.value("size", as: Self.size) ?? size
        keys = try arguments.count("keys", in: 1...1_000_000_000) ?? keys
        puts = try arguments.count("puts", in: 0...100) ?? puts
        removals = try arguments.count("removals", in: 0...100 - puts) ?? removals
        repeats = try arguments.count("repeat", in: 0...100) ?? repeats
        isCollecting = arguments.has("gc")
        killSeconds = try arguments.value("kill", as: Self.seconds)
    }

    private static func seconds(_ text: String) throws(Failure) -> Double {
        let duration = try Quantity.duration(text)
        guard duration > .zero else { throw .usage("\(text) is too short: give more than 0") }
        return duration.inSeconds
    }

    private static func size(_ text: String) throws(Failure) -> Int {
        let (bytes, smallest) = (try Quantity.size(text).bytes, SelfProvingValues.smallest)
        guard (Int64(smallest)...(1 << 30)).contains(bytes) else {
            throw .usage("\(text) is out of range: give \(smallest) to 1G")
        }
        return Int(bytes)
    }

    /// The maximum number of bytes that all workers together write.
    ///
    /// Replaced values stay until a collection, so without a limit a fast disk would fill up within seconds.
    static let writeLimit = 2 << 30
}
