// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// Checks of the clocks, of collections, and of space, limits and evictions.
extension DirectoryInspection {
    /// The largest clock skew that is acceptable.
    ///
    /// The kernel's file times lag by up to 10 ms, and network file systems use their server's clock. Collections are
    /// correct with any skew, but it distorts ages and the order of evictions.
    private static let tolerableSkew: Duration = .seconds(2)

    /// The longest normal duration of a collection.
    ///
    /// A collection works in slices with pauses, which takes many minutes for millions of entries.
    private static let longestCollection: Duration = .seconds(3600)

    /// The longest normal time between collections.
    ///
    /// A process with a janitor collects every minute, the example timer every quarter of an hour. After a day without a
    /// collection, no process is collecting.
    private static let longestPause: Duration = .seconds(86400)

    var clockChecks: [Finding?] {
        let skew = clockSkew ?? .zero
        let size = max(skew, .zero - skew)
        let relation = "\(Quantity.text(size)) \(skew < .zero ? "behind" : "ahead of")"
        // Programs can't set change times: if one is ahead of the clock, the clock was ahead when the file was changed.
        let lead = newestChange - max(skew, .zero)
        let early =
            "a clock that was \(Quantity.text(newestValue)) ahead stored values; they are misses until then"
        let future = "was set back: files here are dated \(Quantity.text(lead)) in the future"
        return [
            .risk("clock", lead > Self.tolerableSkew, future) {
                "set it; if it is already correct, values stored before are misses until that time"
            },
            .risk("clock", newestValue > Record.clockTolerance, early) {
                "set the clock if it is wrong; otherwise store them again, or run `diskcache clear`"
            },
            .fine("clock", clockSkew == nil, "not checked: the directory can't be written"),
            .risk("clock", size > Self.tolerableSkew, "the file system's is \(relation) the system's") {
                "synchronize the clocks: the order of eviction depends on them"
            },
            .fine("clock", "the file system's agrees with the system's"),
        ]
    }

    var collectionChecks: [Finding?] {
        let subject = "collections"
        let last = sinceCollection.map { "last completed \(Quantity.text($0)) ago" } ?? "none yet"
        let process = collector?.process
        let name = process.map { "process \($0)" } ?? "a process that this one can't see"
        let (time, isStopped) = (collector?.duration ?? .zero, collector?.isStopped ?? false)
        let state =
            "\(name) has been collecting for \(Quantity.text(time))\(isStopped ? " and is stopped" : "")"
        let advice =
            process.map { "look at it (ps -o stat,cmd -p \($0)), resume it (kill -CONT \($0)) or end it" }
            ?? "look for it in the other containers that share the directory"
        return [
            .risk(subject, isStopped || time > Self.longestCollection, state) {
                "no other process can collect: \(advice)"
            },
            .fine(subject, collector != nil, "\(name) is collecting"),
            .fallback(subject, sinceCollection ?? age > Self.longestPause, last) {
                "keep the cache open in a process, or run `diskcache gc` from a timer, to free unused space"
            },
            .fine(subject, wasInterrupted, "the last was interrupted; the next completes it"),
            .fine(subject, last),
        ]
    }

    // MARK: Space, limits and evictions

    /// The share of free space below which the disk may fill up before the user notices.
    private static let lowShare = 0.05

    /// The number of bytes by which the cache may still grow.
    private var growth: Int64 {
        let limit = configuration.limits.maximumSize.map { max(0, $0.bytes - (usedBytes ?? 0)) }
        return min(space.availableBytes, limit ?? .max)
    }

    var spaceChecks: [Finding?] {
        let bytes = Double(space.availableBytes) / Double(space.totalBytes)
        let inodes = Double(space.availableInodes) / Double(space.totalInodes)
        let swap = "swap: \(Self.bytes(memory?.swap))"
        let state = "\(Self.bytes(memory?.available)) available (\(swap)) for \(Self.bytes(growth)) of growth"
        return [
            .risk("space", bytes < Self.lowShare, "\(Self.percent(bytes)) free") {
                "free some space, or shrink the cache with `diskcache gc --max-size`"
            },
            .fine("space", "\(Self.percent(bytes)) free"),

            .fine("inodes", space.totalInodes == 0, "not limited"),
            .risk("inodes", inodes < Self.lowShare, "\(Self.percent(inodes)) free") {
                "delete files, or shrink the cache with `diskcache gc --max-entries`"
            },
            .fine("inodes", "\(Self.percent(inodes)) free"),

            .risk("memory", growth > memory?.available ?? .max, state) {
                "set a lower limit (`diskcache config set max-size`), or mount the tmpfs with a smaller size="
            },
            .fine("memory", memory != nil, state),
        ]
    }

    var configurationChecks: [Finding?] {
        let subject = "config.json"
        let isThere = configuration != DirectoryConfiguration()
        let unknown = configuration.unknownKeys.joined(separator: ", ")
        return [
            .risk(subject, configurationProblem != nil, configurationProblem ?? "") {
                "fix it, or delete it and set the limits again with `diskcache config`"
            },
            .risk(subject, !unknown.isEmpty, "unknown to this version: \(unknown)") {
                "correct the spelling (`diskcache config --help`), or upgrade all processes"
            },
            .fine(subject, isThere ? "valid" : "none"),
        ]
    }

    var limitChecks: [Finding?] {
        let (limits, used) = (configuration.limits, usedBytes ?? 0)
        let (size, emptied) = (limits.maximumSize?.bytes ?? 0, space.availableBytes + used)
        let floor = limits.minimumFree?.bytes(of: space.totalBytes) ?? 0
        let isUnreachable = limits.minimumFree == nil && size - used > space.availableBytes
        let (most, room, own) = (Self.bytes(size), Self.bytes(emptied), Self.bytes(overhead))
        let shortage = "\(Self.bytes(floor)) must stay free, but even an empty cache leaves only \(room)"
        return [
            .risk("limit", floor > emptied, shortage) {
                "no value can be kept: free space, or lower min-free: `diskcache config set min-free 10%`"
            },
            .fine("limit", limits.maximumSize == nil && limits.minimumFree != nil, "by free space"),
            .fallback("limit", limits.maximumSize == nil, "no limit on size") {
                "the cache may fill the disk: `diskcache config set max-size 2G`, or `… set min-free 10%`"
            },
            .risk("limit", size < overhead, "\(most), but directories and control file alone take \(own)") {
                "no value fits: raise it with `diskcache config set max-size`"
            },
            .risk("limit", isUnreachable, "\(most), but only \(room) are free or in use by the cache") {
                "lower it, or let the cache shrink when the disk fills up: `diskcache config set min-free 10%`"
            },
            .fine("limit", "\(most), \(Self.percent(Double(used) / Double(size))) used"),
        ]
    }

    var evictionChecks: [Finding?] {
        guard let activity else { return [] }
        let share = "about \(activity.ghostMisses) of \(activity.misses) misses"
        let excess = "larger than the limit: \(share) were for values just evicted"
        return [
            .risk("working set", activity.isBelowWorkingSet, excess) {
                "raise the limit (`diskcache config set max-size`), or store less, to turn these into hits"
            },
            .fine("working set", activity.evictions == 0 ? "nothing was evicted" : "fits the limit"),
        ]
    }

    private static func bytes(_ count: Int64?) -> String { Quantity.text(bytes: count ?? 0) }

    private static func percent(_ share: Double) -> String {
        share.isFinite ? "\(Int(saturating: (share * 100).rounded(.down))) %" : "unknown"
    }
}
