// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import DiskCacheCommand
import Platform

/// The work of `diskcache push`.
enum Push {
    /// How long the command waits without progress.
    private static let patience: Duration = .seconds(30)

    static func run(
        _ arguments: Arguments,
        _ stores: (_ limit: Duration) throws -> SharedStores
    ) throws -> ExitStatus {
        let plan = try TransferPlan(arguments)
        let stores = try stores(patience)
        guard stores.isWritable else {
            let advice = "use `diskcache config set remote.mode readWrite`"
            throw Failure(.permission, "push: this machine may only read from the stores: \(advice)")
        }
        let cache = stores.cache
        let before = cache.directory.activity
        let missing = try note(plan, in: cache)
        let waiting = try wait(for: stores)
        let sent = cache.directory.activity.since(before)
        let tally = TransferTally(
            done: sent.remoteWrites,
            bytes: Int64(sent.remoteBytesSent),
            missing: missing,
            failed: sent.remoteDrops,
            waiting: waiting
        )
        return try report(tally, sent, arguments)
    }

    /// Queues all requested keys for upload, and returns the number of keys without a value.
    private static func note(_ plan: TransferPlan, in cache: SharedCache) throws -> Int {
        var missing = 0
        for key in plan.keys where try !note(key, in: cache) { missing += 1 }
        for selection in plan.selections {
            let keys = try KeyList.keys(of: selection, in: cache)
            // This put queues the list for upload as well.
            try cache.put(KeyList.data(keys), forKey: KeyList.key(for: selection), options: KeyList.terms)
            // A key that was removed in the meantime is not a mistake of the caller.
            for key in keys { _ = try note(key, in: cache) }
        }
        return missing
    }

    /// Queues a key for upload; returns false if it has no value.
    private static func note(_ key: String, in cache: SharedCache) throws -> Bool {
        guard let entry = try cache.entry(forKey: key) else { return false }
        return try cache.withStore { (store, _) throws(CacheError) in try store.noteEntry(entry.keyDigest) }
    }

    /// Waits until no upload is pending, or there is no progress for too long; returns the number of pending uploads.
    private static func wait(for stores: SharedStores) throws -> Int {
        let begin = ContinuousClock.now
        let all = try stores.backlogCount()
        let before = stores.cache.directory.activity
        return try ProgressLine.during { (line) throws -> Int in
            var (least, changed) = (all, begin)
            while true {
                let waiting = try stores.backlogCount()
                let now = ContinuousClock.now
                if waiting < least { (least, changed) = (waiting, now) }
                if waiting == 0 || now - changed > patience { return waiting }
                var tally = TransferTally()
                tally.done = max(0, all - waiting)
                tally.bytes = Int64(stores.cache.directory.activity.since(before).remoteBytesSent)
                line.show(tally.line("pushing", of: all, after: now - begin))
                sleepThread(for: .milliseconds(20))
            }
        }
    }

    private static func report(
        _ tally: TransferTally,
        _ sent: CacheActivity,
        _ arguments: Arguments
    ) throws -> ExitStatus {
        try arguments.print(
            tally.text("pushed"),
            json: [
                "keys": tally.done, "bytes": tally.bytes, "missing": tally.missing, "dropped": tally.failed,
                "waiting": tally.waiting,
            ] as JSON.Object
        )
        if tally.waiting > 0 {
            let isDown = sent.remoteErrors > 0
            let reason = isDown ? "the stores can't be reached" : "nothing was sent for half a minute"
            try Output.complain("push: \(reason): run `diskcache doctor --remote`; nothing is lost")
            return isDown ? .unavailable : .temporary
        }
        if tally.failed > 0 { return .unavailable }
        return tally.missing == 0 ? .done : .miss
    }
}
