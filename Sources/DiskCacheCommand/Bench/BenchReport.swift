// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// The counts of one or several workers.
struct BenchCounts: Codable, Sendable, Equatable {
    var misses = 0
    /// The number of wrong values.
    var wrong = 0
    /// The number of calls that threw.
    var failures = 0
    var removals = 0
    var bytesRead = 0
    var bytesWritten = 0
    /// The number of collections; ``collected`` is the number of files that they removed.
    var collections = 0
    var collected = 0
    /// Descriptions of wrong values and failed calls; the first few of each worker.
    var problems: [String] = []
}

/// A worker's results so far, written to standard output as a line of JSON several times a second.
struct BenchReport: Codable, Equatable {
    var gets = LatencyHistogram()
    var puts = LatencyHistogram()
    var counts = BenchCounts()

    /// The number of calls that have returned, including failed calls but not collections.
    var operations: Int { gets.count + puts.count + counts.removals + counts.failures }

    mutating func merge(_ other: BenchReport) {
        gets.merge(other.gets)
        puts.merge(other.puts)
        for count in [
            \BenchCounts.misses, \.wrong, \.failures, \.removals, \.bytesRead, \.bytesWritten,
            \.collections, \.collected,
        ] {
            counts[keyPath: count] += other.counts[keyPath: count]
        }
        counts.problems += other.counts.problems
    }
}
