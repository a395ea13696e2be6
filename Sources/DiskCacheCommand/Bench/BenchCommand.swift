// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache bench`: measures the cache with real processes, and checks every byte.
enum BenchCommand: Command {
    static let name = "bench"
    static let summary = "measure the cache with several processes, and check every byte"
    static let optionList = """
        -w, --workers N  number of processes, at most 256 (default 4)
        -s, --seconds S  how long the processes run (default 5)
        -n, --operations N  stop after at least N operations in total instead
        --size SIZE  size of each value (default 4K)
        --keys N  number of keys (default 1000)
        --puts PERCENT  share of puts; the rest are gets (default 10)
        --removals PERCENT  share of removals (default 0)
        --repeat PERCENT  share of puts that repeat an earlier value (default 0)
        --gc  also collect garbage continuously, in another process
        --kill SPAN  kill a process every SPAN, and start another
        \(Option.json)
        """
    static let exclusive = [["seconds", "operations"]]
    static let details = """
        Starts several processes that use one new directory at the same time. From each value, a process can
        tell which key it belongs to and whether every byte is right. At the end, bench runs one collection;
        after that, the directory must contain only what the keys need. Every key has a value from the start,
        so without --removals there must be no misses. Half of the operations use a tenth of the keys. bench
        stops early when 2 GiB have been written.

        bench creates the directory, diskcache-bench-…, inside DIR if DIR is a directory but not a cache,
        otherwise next to DIR. It removes the directory at the end, even after Ctrl-C (SIGINT, SIGTERM,
        SIGHUP), but not if SIGKILL ends bench.

        In the output, wrong is the number of values with a wrong byte, and failed the number of calls that
        failed.

        JSON: plan (workers, size, keys and so on); seconds, operationsPerSecond; gets and puts (each with
        count, perSecond, medianMicroseconds, p99Microseconds); counts (misses, wrong, failures, removals,
        bytesRead, bytesWritten, collections, collected: files removed by the collections, problems); kills,
        crashes (of processes); leftovers (collection: as in `diskcache gc`, verify: as in `diskcache verify`,
        temporaries).

        Exit status: 0 done; 64 usage; 65 a value was wrong, or something was left over in the directory; 70 a
        process crashed; 73 the directory can't be created; 74 a call failed; 78 configuration.

        Examples:
          diskcache bench --dir /mnt/disk --size 64K
          diskcache bench --workers 8 --gc --kill 50ms
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let plan = try BenchPlan(arguments)
        let place = try arguments.directory()
        // Before the directory exists, so that no signal can end this process and leave the directory behind.
        let signals = try doing("receive signals") { () throws(Errno) in
            try HeldSignals([.hangup, .interrupt, .terminate])
        }
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
