// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform

/// Stops itself (SIGSTOP) during an operation: `stop CACHE KEY VALUE PLACE`.
///
/// PLACE is a step of a put of VALUE under KEY, `flight` (while it computes the value of KEY), `sweep` (during a
/// collection), `objectStripe` or `entryStripe` (while it holds the stripe of VALUE or KEY, as a collection does to
/// delete), or a step of a removal of all values (such as `rule-written`). Prints "stopping" before it stops, and "done"
/// if it is continued.
enum StopProbe {
    static func run(_ words: [String]) throws {
        guard words.count == 4 else { exit(EX_USAGE) }
        let (key, value, place) = (Digest(ofKey: words[1]), Array(words[2].utf8), words[3])
        var options = StoreOptions()
        options.atStep = { if $0.rawValue == place { stop() } }
        let store = try Store(at: words[0], options: options)
        switch place {
        case "flight":
            let lock = FlightLock(of: key, in: store.directory)
            if try lock.attempt() == .acquired {
                stop()
                lock.release()
            }
        case "sweep":
            var request = SweepRequest()
            request.progress = { if $0.phase == .waiting { stop() } }
            _ = try Sweep.run(request, on: store, now: .now)
        case "objectStripe": try stop(holding: "object", Digest(of: value.span), in: store)
        case "entryStripe": try stop(holding: "entry", key, in: store)
        case _ where RuleStep(rawValue: place) != nil:
            guard store.enact(.remove, .all, now: .now, atStep: { if $0.rawValue == place { stop() } }) else {
                exit(EXIT_FAILURE)
            }
        default:
            var record = Record(content: Content(of: value.span), created: .now)
            record.key = words[1]
            try store.put(value.span, for: key, record)
        }
        Probes.say("done")
    }

    /// Prints "stopping", and stops the process.
    private static func stop() {
        Probes.say("stopping")
        raise(SIGSTOP)
    }

    /// Stops the process while it holds an exclusive lock on a lock file.
    private static func stop(holding name: String, _ digest: Digest, in store: Store) throws {
        let stripe = (Int(digest.description.prefix(2), radix: 16) ?? 0) >> 2
        let number = String(stripe + 0x100, radix: 16).dropFirst()
        let locks = try store.directory.root.openDirectory("locks")
        let lock = try LockFile.acquire(RelativePath("\(name)-\(number)"), in: locks, patience: .seconds(60))
        stop()
        lock?.release()
    }
}
