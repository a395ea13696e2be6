// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// What `diskcache bench` is to do; the workers get it as JSON.
struct BenchPlan: Codable, Sendable {
    var workers = 4
    var seconds = 5.0
    /// Of all workers together, instead of a time.
    var operations: Int?
    var size = 4096
    var keys = 1000
    /// Of a hundred operations; the rest are gets.
    var puts = 10
    var removals = 0
    /// Of a hundred puts, how many write a value that has been written before.
    var repeats = 0
    var isCollecting = false
    /// How often a process is killed; nil: never.
    var killSeconds: Double?

    /// The defaults.
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
        guard duration > .zero else { throw .usage("\(text): it must be more than 0") }
        return duration.inSeconds
    }

    private static func size(_ text: String) throws(Failure) -> Int {
        let (bytes, smallest) = (try Quantity.size(text).bytes, SelfProvingValues.smallest)
        guard (Int64(smallest)...(1 << 30)).contains(bytes) else {
            throw .usage("\(text): a value has at least \(smallest) bytes and at most 1G")
        }
        return Int(bytes)
    }
}

/// `diskcache bench`: how fast the cache is here, with real processes and every byte checked.
enum BenchCommand: Command {
    static let name = "bench"
    static let summary = "measure the cache with several processes, checking every byte"
    static let optionList = """
        -w, --workers N  processes, at most 256 (default 4)
        -s, --seconds S  how long they work (default 5)
        -n, --operations N  end after so many in all instead
        --size SIZE  length of the values (default 4K)
        --keys N  how many keys there are (default 1000)
        --puts PERCENT  share of puts; the others are gets (default 10)
        --removals PERCENT  share of removals (default 0)
        --repeat PERCENT  of the puts, those of bytes that were put before (default 0)
        --gc  another process collects garbage all the time
        --kill SPAN  kill a process that often, and start another
        \(Option.json)
        """
    static let exclusive = [["seconds", "operations"]]
    static let details = """
        Starts processes that work on a directory of their own at the same time. Every value shows whose it is and
        whether it is whole. At the end one collection runs, and the directory must hold nothing but what the keys
        need. Every key has a value from the start, so that without --removals every miss is one too many. Half of
        the operations go to a tenth of the keys. It ends early when 2 GiB have been written.

        The directory is a new one, diskcache-bench-…: inside DIR where DIR is a directory and no cache, else
        beside it. It is removed at the end, also after Ctrl-C (SIGINT, SIGTERM, SIGHUP); SIGKILL of this
        process leaves it there.

        wrong counts values with a wrong byte, failed the calls that threw an error.

        JSON: plan (workers, size, keys and the like); seconds, operationsPerSecond; gets and
        puts (each with count, perSecond, medianMicroseconds, p99Microseconds); counts (misses, wrong, failures,
        removals, bytesRead, bytesWritten, collections, collected: files that these removed, problems); kills,
        crashes (of processes); leftovers (collection: as `diskcache gc`, verify: as `diskcache verify`,
        temporaries).

        Exit status: 0; 64 usage; 65 a wrong value, or the directory was not as it must be; 70 a process
        crashed; 73 the directory can't be made; 74 a call failed; 78 configuration.

        Examples:
          diskcache bench --dir /mnt/disk --size 64K
          diskcache bench --workers 8 --gc --kill 50ms
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let plan = try BenchPlan(arguments)
        let place = try arguments.directory()
        // First, so that no signal can come between the making of the directory and its removal.
        let signals = try HeldSignals([.hangup, .interrupt, .terminate])
        let directory = try BenchDirectory(near: place, isDefault: arguments.namedDirectory() == nil)
        let outcome = Result {
            let cache = try SharedCache(at: directory.path, configuration: arguments.configuration())
            return try ProgressLine.during { line in
                var bench = Bench(plan, on: cache)
                return try bench.run(interruption: { signals.next()?.signal }, onProgress: { line.show($0) })
            }
        }
        try directory.remove()
        do {
            let found = try outcome.get()
            try arguments.print(found.text, json: found.json)
            return found.status
        } catch let interrupted as Interrupted {
            CurrentProcess.end(like: interrupted.signal)
        }
    }
}
