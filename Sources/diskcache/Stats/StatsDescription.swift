// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// What `diskcache stats` prints as JSON; what does not belong to its form is left out.
struct StatsDescription: Encodable {
    let path: String
    var entries: Int?
    var entryBytes: Int64?
    var expiredEntries: Int?
    var unreadableEntries: Int?
    var objects: Int?
    var objectBytes: Int64?
    var bytes: Int64?
    var overheadBytes: Int64?
    var logicalBytes: Int64?
    var oldestAccess: Date?
    var totals: Totals?
    var usage: CacheUsage?
    var limits: CacheLimits?
    var evictionAgeSeconds: Double?
    var isBelowWorkingSet: Bool?
    var lastSweep: SweepDescription?
    var reset: Bool?
    var time: Date?
    var seconds: Double?
    var hitRatio: Double?
    var perSecond: Rates?

    init(path: String) {
        self.path = path
    }

    init(path: String, _ totals: CacheTotals, _ last: SweepSummary?) {
        self.init(path: path)
        self.totals = Totals(totals)
        add(totals)
        lastSweep = last.map { SweepDescription($0) }
    }

    init(path: String, _ statistics: CacheStatistics) {
        self.init(path: path)
        entries = statistics.entries
        entryBytes = statistics.entryBytes
        expiredEntries = statistics.expiredEntries
        unreadableEntries = statistics.unreadableEntries
        objects = statistics.objects
        objectBytes = statistics.objectBytes
        bytes = statistics.entryBytes + statistics.objectBytes
        overheadBytes = statistics.overheadBytes
        logicalBytes = statistics.logicalBytes
        oldestAccess = statistics.oldestAccess
        totals = statistics.totals.map { Totals($0) }
        if let totals = statistics.totals { add(totals) }
        lastSweep = statistics.lastSweep.map { SweepDescription($0) }
    }

    private mutating func add(_ totals: CacheTotals) {
        usage = totals.usage
        limits = totals.limits
        evictionAgeSeconds = totals.evictionAge?.inSeconds
        isBelowWorkingSet = EvictionPressure(totals.activity).isHigh
    }

    /// What all processes did: the library's counts, and what they do not hold.
    struct Totals: Encodable {
        private let totals: CacheTotals

        init(_ totals: CacheTotals) {
            self.totals = totals
        }

        private enum Key: String, CodingKey {
            case since, hitRatio
        }

        func encode(to encoder: any Encoder) throws {
            try totals.activity.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encodeIfPresent(totals.since, forKey: .since)
            try container.encodeIfPresent(totals.activity.hitRatio, forKey: .hitRatio)
        }
    }
}

/// A sweep as JSON has it: spans in seconds, and what follows from the rest.
struct SweepDescription: Encodable {
    let process: Int32
    let began: Date
    let ended: Date?
    let seconds: Double?
    let workedSeconds: Double
    let expiredOnly: Bool
    let isComplete: Bool
    let removed: [RemovalReason: Tally]
    let removedBytes: Int64
    let entries: Tally
    let objects: Tally
    let drift: Tally?
    let lastFull: Date?

    init(_ sweep: SweepSummary) {
        process = sweep.process
        began = sweep.began
        ended = sweep.ended
        seconds = sweep.ended.map { ($0.timeIntervalSince(sweep.began) * 1000).rounded() / 1000 }
        workedSeconds = sweep.worked.inSeconds
        expiredOnly = sweep.expiredOnly
        isComplete = sweep.isComplete
        removed = sweep.removed
        removedBytes = sweep.removedBytes
        entries = sweep.entries
        objects = sweep.objects
        drift = sweep.drift
        lastFull = sweep.lastFull
    }
}
