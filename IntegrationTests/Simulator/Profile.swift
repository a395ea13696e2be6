// SPDX-License-Identifier: Apache-2.0

/// What happens in a run, and how often.
struct Profile {
    /// How the next process is chosen.
    enum Schedule {
        /// At each point another process goes on with this probability, in thousandths.
        case random(perMille: Int)
        /// The process of the highest priority runs; at this many points of the run it gets the lowest one.
        ///
        /// Finds a fault that needs *d* changes with a known probability: Burckhardt and others, *A Randomized Scheduler
        /// with Probabilistic Guarantees of Finding Bugs* (ASPLOS 2010).
        case priorities(changes: Int)
        /// The process that runs goes on, except at the points that are given.
        case given([Intervention])
    }

    /// What happens at one point of a run.
    struct Intervention: CustomStringConvertible {
        enum Kind: String, CaseIterable {
            /// Another process goes on.
            case change
            /// The running process is killed.
            case kill
        }

        /// The number of the call, counted over all processes from 1 on.
        let point: Int
        let kind: Kind

        /// As the option `--schedule` takes it.
        var description: String { "\(kind.rawValue):\(point)" }
    }

    var name: String
    var schedule = Schedule.random(perMille: 200)
    var processes = 3
    /// Whether only the first process collects, so that the others need not wait for each other's collections.
    var hasOneCollector = false
    /// The different values that are put.
    var values = 8
    /// The operations of each process.
    var operations = 16
    var keys = 2
    /// The operations that are drawn, with their weights.
    var weights: [(OperationKind, Int)] = [
        (.get, 6), (.put, 5), (.remove, 2), (.compute, 1), (.removeAll, 1), (.collect, 1), (.reopen, 1),
        (.touch, 1),
    ]
    /// One call in this many kills its process; 0 for none.
    var killsOneIn = 0
    var mostKills = 4
    /// One call in this many stops its process for a while; 0 for none.
    var stopsOneIn = 0
    /// One call in this many fails; 0 for none.
    var faultsOneIn = 0
    /// One put in this many has a time to live; 0 for none.
    var expiresOneIn = 0
    /// Whether records are stored in files instead of extended attributes.
    var usesSidecars = false
    /// Whether the processes begin without a directory, so that each of them makes it.
    var beginsEmpty = false
    /// Whether the control file is unusable when the processes begin, so that one of them replaces it; all keys have
    /// values by then.
    var damagesControl = false
    /// The bytes that the directory may take; nil for no limit.
    var limit: Int?
    /// The lengths of values; a value has the one at its number, modulo their count.
    var lengths = [0, 100, 3000, 5000]
    /// The bytes of the file system.
    var diskSize = 1 << 32
    /// Before one call in this many, a file of the cache is damaged or removed; 0 for none.
    var damageOneIn = 0
    /// Before one call in this many, the wall clock steps; 0 for none.
    var clockStepsOneIn = 0
    /// Before one call in this many, an entry or object that was replaced or removed gets its name again; 0 for none.
    var putsBackOneIn = 0
    /// Before one call in this many, the whole directory is removed; 0 for none.
    var removalsOneIn = 0
    /// Opening is tried three times, so it succeeds however the removals fall.
    var mostRemovals = 2

    private static let collecting: [(OperationKind, Int)] = [
        (.get, 3), (.put, 5), (.remove, 3), (.collect, 4),
    ]

    private static let filling: [(OperationKind, Int)] = [
        (.get, 3), (.put, 8), (.remove, 1), (.collect, 1), (.reopen, 1),
    ]
    private static let large = [200, 100_000, 300_000, 500_000, 700_000]
    private static let counting: [(OperationKind, Int)] = [
        (.get, 1), (.increment, 6), (.putIfAbsent, 4), (.remove, 3),
    ]
    private static let renewing: [(OperationKind, Int)] = [
        (.get, 3), (.put, 3), (.remove, 3), (.renew, 6), (.removeAll, 1), (.collect, 1),
    ]
    private static let computing: [(OperationKind, Int)] = [
        (.get, 2), (.put, 1), (.remove, 3), (.compute, 6),
    ]

    static let all: [Profile] = [
        Profile(name: "plain"),
        Profile(name: "plain-rare", schedule: .random(perMille: 20)),
        Profile(name: "priorities", schedule: .priorities(changes: 3)),
        Profile(
            name: "collections",
            schedule: .random(perMille: 300),
            hasOneCollector: true,
            values: 2,
            weights: collecting
        ),
        Profile(
            name: "collections-priorities",
            schedule: .priorities(changes: 5),
            hasOneCollector: true,
            values: 2,
            weights: collecting
        ),
        Profile(name: "flights", schedule: .random(perMille: 300), weights: computing),
        Profile(name: "counters", schedule: .random(perMille: 300), weights: counting),
        Profile(name: "renewals", schedule: .random(perMille: 300), weights: renewing),
        Profile(name: "sidecars", usesSidecars: true),
        Profile(name: "expiry", expiresOneIn: 2),
        Profile(name: "kills", killsOneIn: 400),
        Profile(name: "kills-priorities", schedule: .priorities(changes: 4), killsOneIn: 400),
        Profile(name: "stops", stopsOneIn: 300),
        Profile(name: "faults", faultsOneIn: 60),
        Profile(name: "openers", beginsEmpty: true),
        Profile(name: "openers-kills", killsOneIn: 500, beginsEmpty: true),
        Profile(name: "replaced-control", damagesControl: true),
        Profile(name: "replaced-control-kills", killsOneIn: 500, damagesControl: true),
        Profile(name: "limit", values: 60, keys: 12, weights: filling, limit: 8 << 20, lengths: large),
        Profile(
            name: "limit-kills",
            values: 60,
            keys: 12,
            weights: filling,
            killsOneIn: 500,
            limit: 8 << 20,
            lengths: large
        ),
        Profile(name: "full-disk", values: 60, keys: 12, weights: filling, lengths: large, diskSize: 7 << 20),
        Profile(name: "damage", damageOneIn: 200),
        Profile(name: "clock", clockStepsOneIn: 200),
        Profile(name: "restored", putsBackOneIn: 200),
        Profile(name: "removed-directory", removalsOneIn: 500),
        Profile(name: "everything", killsOneIn: 600, stopsOneIn: 600, faultsOneIn: 300, expiresOneIn: 4),
    ]
}

/// The kinds of operations of a simulated process.
enum OperationKind: String, CaseIterable {
    case get, put, putIfAbsent, remove, compute, increment, removeAll, expireAll, collect, reopen, touch,
        renew
}

/// A safeguard of the product that the simulator disables, to test that its checks notice.
///
/// With `--mistake NAME --first`, objects and entries took up to 700 runs. Two collections at once break no promise that is
/// checked: 1,200 runs did not notice a missing janitor lock.
enum Mistake: String, CaseIterable {
    /// The stripes of objects are not locked: a collection can delete an object that a put is about to name.
    case objectStripes = "object-stripes"
    /// The stripes of entries are not locked.
    case entryStripes = "entry-stripes"
    /// The lock of collections is not locked: two run at once.
    case janitorLock = "janitor-lock"
    /// The locks of computations are not locked: two processes compute one value.
    case flightLocks = "flight-locks"
    /// An object that a put uses again is not touched.
    case touches
    /// Values in memory are used whatever the generation of their key is.
    case generations
    /// Bytes are not verified, and the second half of each object is written as zeros.
    case checksums
}
