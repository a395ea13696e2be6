// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform

// A process that stops itself (SIGSTOP) during an operation: `StopProbe CACHE KEY VALUE PLACE`.
//
// PLACE is a step of a put of VALUE under KEY, or `flight` (it computes the value of KEY), `sweep` (it sweeps),
// `objectStripe` or `entryStripe` (it holds the stripe of VALUE or KEY, as a sweep does to delete), or a step of a removal
// of all values (`rule-written` and the like). It prints "stopping" first, and "done" if it was continued.

/// Prints "stopping" and stops the process.
@Sendable func stop() {
    FileHandle.standardOutput.write(Data("stopping\n".utf8))
    raise(SIGSTOP)
}

/// Stops the process while it holds a lock file exclusively.
func stop(holding name: String, _ digest: Digest, in store: Store) throws {
    let stripe = (Int(digest.description.prefix(2), radix: 16) ?? 0) >> 2
    let number = String(stripe + 0x100, radix: 16).dropFirst()
    let locks = try store.directory.root.openDirectory("locks")
    let lock = try LockFile.acquire(RelativePath("\(name)-\(number)"), in: locks, patience: .seconds(60))
    stop()
    lock?.release()
}

let arguments = CommandLine.arguments
guard arguments.count == 5 else { exit(EX_USAGE) }
do {
    let (key, value, place) = (Digest(ofKey: arguments[2]), Array(arguments[3].utf8), arguments[4])
    var options = StoreOptions()
    options.atStep = { if $0.rawValue == place { stop() } }
    let store = try Store(at: arguments[1], options: options)
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
        record.key = arguments[2]
        try store.put(value.span, for: key, record)
    }
    print("done")
} catch {
    print("\(error)")
    exit(EXIT_FAILURE)
}
