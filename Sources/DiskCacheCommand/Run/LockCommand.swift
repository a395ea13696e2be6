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
        -p, --permits COUNT  let this many hold it at the same time (default 1)
        -w, --wait SPAN  give up after SPAN; 0: at once (default: wait until it is free)
        """
    static let details = """
        Waits for the lock NAME of the directory, and then becomes CMD, which holds it until it has ended. All
        processes that use the same lock name in the same directory exclude each other, including programs that
        use the library. The lock is not fair: waiters are not served in order. A lock is independent of keys:
        values can be read and written meanwhile.

        When CMD ends, in whatever way, the kernel releases the lock, and a waiter gets it within 20 ms.
        Processes that CMD leaves behind hold it too, unless they close their inherited descriptors.

        The options of lock stand before CMD, on either side of NAME. The words of CMD are bytes and need not be
        UTF-8.

        With --permits, up to COUNT commands run at the same time; all should give the same COUNT. CMD gets
        the standard streams and the environment of this process, and its process identifier, so signals reach
        it as usual. If the lock can't be used, CMD is not run. The lock's file, of one line, stays until the
        next one takes the lock, or until the next collection. Creates the directory if it is missing.

        Exit status: that of CMD; 75 another process held the lock for SPAN; 126 CMD can't be executed; 127 CMD
        was not found; 64 usage; 73 no space, not a directory, or it can't be created or written;
        77 permission; 78 not a cache.

        Examples:
          diskcache lock nightly --wait 0 -- ./report.sh
          diskcache lock download --permits 3 -- curl -sfO https://example.org/large.iso
        """

    /// How long a wait is silent, even on a terminal.
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

    /// Returns the permit, once it is free.
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

    /// Returns an exit status like env(1) and shells do.
    private static func refuse(_ program: String, _ error: Errno) throws -> ExitStatus {
        let advice =
            switch error {
            case .noEntry: "check its name and $PATH"
            case .accessDenied, .notExecutable: "name a program that can be executed"
            default: "it was not run"
            }
        try Output.complain("lock: \(program): \(error): \(advice)")
        return error == .noEntry ? .notFound : .notExecutable
    }
}
