// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheCommand

/// The work of `diskcache pull`.
enum Pull {
    /// A key to fetch, which was given or is in a list.
    private struct Wanted: Sendable {
        let key: String
        /// The selection that the value must match, even if a list contains its key.
        let selection: KeySelection
    }

    /// The time limit for a response; it is long, because no other call waits.
    private static let patience: Duration = .seconds(30)

    static func run(
        _ arguments: Arguments,
        _ stores: (_ limit: Duration) throws -> SharedStores
    ) throws -> ExitStatus {
        let plan = try TransferPlan(arguments)
        guard !plan.isEmpty else {
            let words = "give KEY…, --prefix or --tag; see `diskcache pull --help`"
            throw Failure.usage("pull: missing operand: \(words)")
        }
        let parallel = try arguments.count("parallel", in: 1...64) ?? 8
        let stores = try stores(patience)
        let cache = stores.cache
        let before = cache.directory.activity
        var wanted = plan.keys.map { Wanted(key: $0, selection: .all) }
        var missingLists = 0
        for selection in plan.selections {
            // The list in the store may be newer than a local copy.
            if let list = stores.look(KeyList.key(for: selection)) {
                wanted += KeyList.keys(in: list, for: selection).map { Wanted(key: $0, selection: selection) }
            } else {
                missingLists += 1
            }
        }
        var tally = try Transfer(verb: "pulling", count: wanted.count, parallel: parallel).run(wanted) {
            (wanted) throws(CacheError) in
            guard let hit = try cache.get(forKey: wanted.key, sharedIf: wanted.selection) else {
                return .missing
            }
            return hit.source == .remote ? .done(Int64(hit.value.count)) : .present
        }
        let done = cache.directory.activity.since(before)
        tally.missing += missingLists
        tally.failed = done.remoteErrors + done.remoteTimeouts
        return try report(tally, arguments)
    }

    private static func report(_ tally: TransferTally, _ arguments: Arguments) throws -> ExitStatus {
        try arguments.print(
            tally.text("pulled"),
            json: [
                "keys": tally.done, "bytes": tally.bytes, "present": tally.present, "missing": tally.missing,
                "failed": tally.failed,
            ] as JSON.Object
        )
        if tally.missing == 0 { return .done }
        return tally.failed == 0 ? .miss : .unavailable
    }
}
