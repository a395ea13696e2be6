// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// `diskcache lock`.
enum LockCommand: Command {
    static let name = "lock"
    static let operands = "NAME [--] CMD [ARG]…"
    static let summary = "run a command while no other process holds a lock"
    static let optionList = """
        -p, --permits COUNT  let up to COUNT commands hold the lock at the same time (default 1)
        -w, --wait SPAN  wait at most SPAN for the lock; 0: don't wait (default: no limit)
        """
    static let details = """
        Waits for the lock NAME of the directory, and then becomes CMD, which holds the lock until it ends.
        All processes that use the same lock name in the same directory exclude each other, including programs
        that use the library. The lock is not fair: waiting processes are not served in order. Locks are
        independent of keys: values can be read and written meanwhile.

        However CMD ends, the kernel then releases the lock, and a waiting process gets it within 20 ms.
        Processes that CMD leaves behind also hold the lock, unless they close their inherited descriptors.

        Put the options of lock before CMD; they can precede or follow NAME. The words of CMD are bytes and
        need not be UTF-8.

        With --permits, up to COUNT commands run at the same time; all calls should give the same COUNT. CMD
        inherits the standard streams, the environment and the process ID of lock, so signals reach it as
        usual. If the lock can't be used, CMD is not run. The lock file contains one line, and stays until the
        next process takes the lock, or until the next collection. Creates the directory if it is missing.

        Exit status: that of CMD; 75 the lock was held by others for SPAN; 126 CMD can't be executed; 127 CMD
        was not found; 64 usage; 73 no space, not a directory, or the directory can't be created or written;
        77 permission; 78 not a cache.

        Examples:
          diskcache lock nightly --wait 0 -- ./report.sh
          diskcache lock download --permits 3 -- curl -sfO https://example.org/large.iso
        """

    /// How long a wait lasts before it is shown on a terminal.
    private static let patience: Duration = .seconds(1)

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let name = arguments.operands[0]
        if name.isEmpty { throw Failure.usage("lock: the name is empty: give a name") }
        let permits = try arguments.count("permits", in: 1...StoreLayout.mostPermits) ?? 1
        let limit = try arguments.value("wait", as: Quantity.duration)
        let cache = try arguments.openCache()
        let permit = try wait(for: name, permits: permits, within: limit, in: cache)
        try permit.setInherited()
        var request = SpawnRequest(bytes: arguments.commandLine)
        request.searchesPath = true
        let error = request.replaceProcess()
        permit.release()
        return try refuse(arguments.operands[1], error)
    }

    /// Waits for a permit, and returns it.
    private static func wait(
        for name: String,
        permits: Int,
        within limit: Duration?,
        in cache: SharedCache
    ) throws -> FlightLock {
        let lock = try cache.namedLock(name, permits: permits)
        var wait = LockWait(within: limit)
        let silentUntil = ContinuousClock.now + patience
        var line: ProgressLine?
        defer { line?.clear() }
        while true {
            let pause: Duration
            switch try cache.attempt(lock, &wait) {
            case .acquired(let permit): return permit
            case .pause(let length): pause = length
            case .over: throw cache.notToBeHad(lock, name)
            }
            if ContinuousClock.now >= silentUntil {
                if line == nil { line = ProgressLine() }
                line?.show(words(name, lock.holder))
            }
            sleepThread(for: pause)
        }
    }

    private static func words(_ name: String, _ holder: ComputingProcess?) -> String {
        guard let holder else { return "waiting for the lock \(name)" }
        let span = Quantity.text(max(.zero, Timestamp.now - holder.moment))
        return "waiting for the lock \(name): process \(holder.processIdentifier) has held it for \(span)"
    }

    /// Reports that the program can't be executed; returns the same exit status as env(1) and shells.
    private static func refuse(_ program: String, _ error: Errno) throws -> ExitStatus {
        let advice =
            switch error {
            case .noEntry: "check its name and $PATH"
            case .accessDenied, .notExecutable: "give a program that can be executed"
            default: "it was not run"
            }
        try Output.complain("lock: \(program): \(error): \(advice)")
        return error == .noEntry ? .notFound : .notExecutable
    }
}
