// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// `diskcache push`.
enum PushCommand: Command {
    static let name = "push"
    static let operands = "[KEY]…"
    static let summary = "send values to the stores that other machines share"
    static let needsNetwork = true
    static let optionList = """
        --prefix TEXT…  all keys that begin with TEXT
        --tag TAG…  all values with this tag
        \(Option.scope)
        \(Option.json)
        """
    static let details = """
        If config.json names a store that this machine may write to, new values are sent automatically in the
        background; a list on disk, which outlives every process, has the pending ones. push waits until the
        list is empty. With KEY, --prefix or --tag it first adds these values to the list, for example older
        ones. Values that are too long or too short for the stores are not sent (remote.maximumSize,
        remote.minimumSize). A key that begins with - needs -- before it.

        With --prefix or --tag, push also sends a list of the keys, so that pull with the same option finds them
        on other machines. The list is stored here under a key that begins with diskcache:list. Keys that are
        stored only as digests (longer than 1 KiB, or on request) are left out, and so are values that stay on
        this machine, such as downloads.

        JSON: keys, bytes (of the values that this process has sent), missing (keys without a value), dropped
        (refused by a server), waiting (not sent yet).

        Exit status: 0 everything is sent; 1 one of the keys has no value; 64 usage; 69 the stores can't be
        reached, or refuse the values; 75 nothing could be sent for half a minute; 77 permission, or remote.mode
        is read; 78 not a cache, or config.json names no store.

        Examples:
          diskcache push
          diskcache push --prefix thumbs/
        """

    /// How long the command waits while no value is sent.
    private static let patience: Duration = .seconds(30)

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let plan = try TransferPlan(arguments)
        let stores = try TransferPlan.stores(arguments, limit: patience)
        guard stores.isWritable else {
            let advice = "`diskcache config set remote.mode readWrite` lets it write"
            throw Failure(.permission, "push: this machine only reads from the stores: \(advice)")
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

    /// Adds all requested keys to the list of pending uploads, and returns the number of keys without a value.
    private static func note(_ plan: TransferPlan, in cache: SharedCache) throws -> Int {
        var missing = 0
        for key in plan.keys where try !note(key, in: cache) { missing += 1 }
        for selection in plan.selections {
            let keys = try KeyList.keys(of: selection, in: cache)
            // Storing the list also adds it to the pending uploads.
            try cache.put(KeyList.data(keys), forKey: KeyList.key(for: selection), options: KeyList.terms)
            // A key that was deleted in the meantime is not the caller's mistake.
            for key in keys { _ = try note(key, in: cache) }
        }
        return missing
    }

    /// Adds a key to the pending uploads; returns false if it has no value.
    private static func note(_ key: String, in cache: SharedCache) throws -> Bool {
        guard let entry = try cache.entry(forKey: key) else { return false }
        try cache.withStore { (store, _) throws(CacheError) in
            store.noteForRemote(entry.keyDigest, .put(content: entry.digest, length: entry.size))
        }
        return true
    }

    /// Waits until no uploads are pending, or no progress was made for too long; returns the number of pending uploads.
    private static func wait(for stores: any Stores) throws -> Int {
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
            try Output.complain("push: \(reason): see `diskcache doctor --remote`; nothing is lost")
            return isDown ? .unavailable : .temporary
        }
        if tally.failed > 0 { return .unavailable }
        return tally.missing == 0 ? .done : .miss
    }
}
