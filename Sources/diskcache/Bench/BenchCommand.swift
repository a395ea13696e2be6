// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache bench`: how fast the cache is here, with real processes and every byte checked.
struct BenchCommand: Command {
    static let name = "bench"
    static let operands = ""
    static let summary = "measure the cache with several processes, checking every byte"
    static let details = """
        Starts processes that work on one fresh directory at the same time. Every value proves whose it is and
        that it is whole; at the end one collection runs, and the directory must hold nothing but what the keys
        need. Keys are drawn by Zipf's law (exponent 0.99); mixed is 9 gets for 1 put. A workload ends early
        when it has written 2 GiB.

        The directory is a new one, diskcache-bench-…: inside DIR where DIR is a directory and no cache, else
        beside it. It is removed at the end, also after Ctrl-C (SIGINT, SIGTERM, SIGHUP); SIGKILL of this
        process leaves it there.

        Columns: operations a second over all processes; latencies of get and put (median, 99th percentile);
        misses of keys that have a value; values with a wrong byte; bytes read and written.

        Exit status: 0; 64 usage; 65 a wrong value, or the directory was not as it must be; 70 a process
        crashed; 73 the directory can't be made; 74 a call failed; 78 configuration.

        Example: diskcache bench --workers 8 --gc --kill 50ms --workload mixed
        """
    static let options = BenchPlan.options

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "options only")
        let plan = try BenchPlan(arguments)
        let place = try arguments.directory()
        // First, so that no signal can come between the making of the directory and its removal.
        let signals = try HeldSignals([.hangup, .interrupt, .terminate])
        let directory = try BenchDirectory(near: place, isDefault: arguments.namedDirectory() == nil)
        let outcome = Result {
            try measure(plan, directory, arguments, interruption: { signals.next()?.signal })
        }
        if plan.isKept {
            try Output.complain("kept \(directory.path)")
        } else {
            try directory.remove()
        }
        do {
            return try outcome.get()
        } catch let interrupted as Interrupted {
            CurrentProcess.end(like: interrupted.signal)
        }
    }

    private static func measure(
        _ plan: BenchPlan,
        _ directory: BenchDirectory,
        _ arguments: Arguments,
        interruption: () -> Signal?
    ) throws -> ExitStatus {
        let cache = try SharedCache(at: directory.path, configuration: arguments.configuration())
        let found = try ProgressLine.during { line in
            var bench = Bench(plan, on: cache, onProgress: { line.show($0) })
            return try bench.run(interruption: interruption)
        }
        try Output.print(arguments.has("json") ? JSON.line(found) : BenchTable.text(found))
        return found.status
    }
}
