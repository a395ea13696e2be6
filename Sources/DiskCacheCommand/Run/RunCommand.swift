// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// `diskcache run`.
enum RunCommand: Command {
    static let name = "run"
    static let operands = "[--] CMD [ARG]…"
    static let summary = "run a command once, and replay its output to other processes and later calls"
    static let optionList = """
        -t, --ttl SPAN  replay results up to SPAN old; never: of any age (default $DISKCACHE_TTL or 60s)
        -s, --stale SPAN  replay them for SPAN longer, while one process renews them
        -k, --key KEY  use this key instead of one made from the command line
        --scope TEXT  prefix the key with TEXT: scopes share no results (default $DISKCACHE_SCOPE)
        -e, --env NAME…  include the value of the variable NAME in the key
        --cwd  include the working directory in the key
        --modtime FILE…  include FILE's modification time in the key
        --hash FILE…  include FILE's content in the key; FILE can be a pipe of the shell, <(COMMAND)
        -w, --wait SPAN  wait at most SPAN while another process runs CMD; 0: don't wait (default: no limit)
        -f, --force  run the command even if a result is stored
        --warm  print nothing
        --cache-failures[=SPAN]  also store failures, for SPAN instead of --ttl
        """
    static let details = """
        The first process that calls run with a key runs CMD and prints its output as it arrives. Processes
        that call run with the same key meanwhile wait, and get the same bytes on the same streams in the same
        order, and the same exit status. If the process that runs CMD is killed, one of them takes over at
        once. Later calls replay the stored result until it is too old.

        The key is made from the scope, every word of the command, and what --env, --cwd, --modtime and --hash
        include. An unset variable and a missing file are part of the key like any other value. `diskcache ls`
        lists the key, `diskcache rm` removes its result, and `diskcache rm --prefix` removes all results of a
        scope. A result replaces a value that `diskcache put` has stored under the same key. The standard
        input of CMD is empty, because input is not part of the key. The order within each stream is exact.
        Bytes written to both streams within microseconds may be swapped. All replays are the same.

        A result is stored with the --ttl and --stale of the call that ran CMD. Another call replays it only
        as long as its own --ttl and --stale also allow it. With --stale, run replays an old result at once,
        and one process renews it in the background. With --force, run waits while another process runs the
        command, and then runs it. With --warm, run returns once there is a result, with its exit status; put
        & after the command line to continue meanwhile. If run waits for more than five seconds, it reports
        that in one line on standard error.

        If config.json names remote stores, run looks up a missing result there before it runs CMD, and sends
        the output of CMD there.

        An exit status other than 0 is a failure. Failures are stored only with --cache-failures, and replayed
        only to calls that also give it; otherwise the next waiting process runs CMD itself. A result is never
        stored if a signal ended CMD, if CMD's output was not read to the end (as in `| head -1`), or if run
        was told to stop. run passes HUP, INT, QUIT, TERM, USR1 and USR2 on to CMD. If SIGKILL ends run, CMD
        continues until it next writes. run waits for processes that CMD leaves behind with its output open.

        If the cache can't be used (for example a full disk, no permission, no $HOME, an invalid
        $DISKCACHE_TTL), or the key can't be made (--cwd, --modtime, --hash), run reports that in one line on
        standard error and runs CMD anyway. If no file descriptor is free, run replaces itself with CMD. The
        words of CMD are bytes and need not be UTF-8.

        Exit status: that of CMD; if a signal ended CMD, the same signal ends run; 126 CMD can't be executed;
        127 CMD was not found; 64 usage, or CMD calls run with the same key; 74 the output can't be written;
        75 another process was still running CMD after SPAN.

        Examples:
          diskcache run --ttl 1h -- curl -sf https://example.org/rates.json
          diskcache run --ttl 10m --stale 1d --env USER -- kubectl get pods
          diskcache run --ttl never --cwd --hash go.sum -- go list -m all
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let arguments = arguments.takingOperand(for: "cache-failures") {
            (try? ExpirationOptions.lifetime($0)) != nil
        }
        let order = try RunOrder(arguments)
        Signal.brokenPipe.ignore()
        // Other machines need the result of a forced run, too.
        if order.isForced { arguments.shareIfConfigured() }
        var session = RunSession(.valueInTime, order, cache(order, arguments)) {
            arguments.shareIfConfigured()
        }
        let end = try session.run { renew(order, in: $0, arguments) }
        arguments.network?.finish()
        RunCommand.end(end)
    }

    /// Returns the cache; nil if it can't be used for any reason, because the command must run nevertheless.
    private static func cache(_ order: RunOrder, _ arguments: Arguments) -> SharedCache? {
        do {
            if let obstacle = order.obstacle { throw obstacle }
            return try arguments.openCache(sharing: true)
        } catch {
            Notice.warnUncached(error)
            return nil
        }
    }

    /// Ends this process in the same way as the command ended.
    static func end(_ end: SpawnedProcess.End) -> Never {
        switch end {
        case .exited(let status): CurrentProcess.exit(status)
        case .killed(let signal): CurrentProcess.end(like: signal)
        }
    }

    /// Starts a process that renews a result, unless a process already computes it.
    private static func renew(_ order: RunOrder, in cache: SharedCache, _ arguments: Arguments) {
        do {
            let lock = try cache.flightLock(forKey: order.key)
            guard try cache.attempt(lock) == .acquired else { return }
            // The new process takes the lock itself: if several are started, the first one renews the result for all.
            lock.release()
            var request = SpawnRequest(bytes: order.refreshing(in: cache.path, arguments))
            // The new process inherits no terminal, and no descriptor whose end another process may be waiting for.
            request.input = .null
            request.output = .null
            request.errors = .null
            request.isNewSession = true
            try request.start()
        } catch {
            Notice.warn("the old result is not renewed: \(error)")
        }
    }
}

/// The command of the background process that `run --stale` starts.
enum RefreshCommand: Command {
    static let name = RunOrder.refreshCommand
    static let operands = RunCommand.operands
    static let summary = "renew a result in the background; used by run"
    static let optionList = RunCommand.optionList

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        CurrentProcess.closeInheritedDescriptors()
        arguments.shareIfConfigured()
        var order = try RunOrder(arguments)
        order.isSilent = true
        Signal.brokenPipe.ignore()
        // The result must be renewed even if other machines have one.
        var session = RunSession(.refresh, order, try arguments.openCache(sharing: true)) {}
        let end = try session.run { _ in }
        arguments.network?.finish()
        RunCommand.end(end)
    }
}
