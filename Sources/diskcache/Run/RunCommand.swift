// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// `diskcache run`.
enum RunCommand: Command {
    static let name = "run"
    static let operands = "[--] CMD [ARG]…"
    static let summary = "run a command once for all processes, and replay its output to the others and later"
    static let stopsAtOperand = true
    static let options = [
        Option("ttl", "t", "SPAN", help: "replay results that are younger; never: of any age (60s)"),
        Option("stale", "s", "SPAN", help: "for so long after that still, while it is renewed"),
        Option("key", "k", "KEY", help: "the key, instead of one made from what follows"),
        Option("scope", nil, "TEXT", help: "a part of the key: other scopes have other results"),
        Option("env", "e", "NAME", isRepeatable: true, help: "this variable is a part of the key"),
        Option("cwd", help: "the working directory is a part of the key"),
        Option("modtime", nil, "FILE", isRepeatable: true, help: "when FILE was modified is, too"),
        Option("force", "f", help: "run it anew, whatever is stored"),
        Option("warm", help: "print nothing"),
        Option(
            "cache-failures",
            nil,
            "SPAN",
            isValueOptional: true,
            help: "keep it also where it fails, for SPAN instead of --ttl"
        ),
    ]
    static let details = """
        The first to ask runs CMD and prints what it writes as it comes; all others that ask meanwhile wait,
        and get the same: bytes, streams, order and exit status. Where the one that runs it is killed, one
        of them takes over at once. Once it is stored, every later call replays it until it is too old.

        The key is made from the scope and every word of the command, and from what --env, --cwd and
        --modtime name; `diskcache ls` lists it, `diskcache rm` forgets it. CMD finds an empty standard input,
        as that is no part of the key. Order: each stream is exact; between the two it is that in which they
        came here, so what is written to both within microseconds may change places. All replays are alike.

        A result is stored with the --ttl and --stale of who ran it, and used as long as those of who asks
        allow it too. With --stale an old one is replayed at once, and one process renews it in the
        background, one for all. --force waits while another runs the command, then runs it. --warm returns
        when the result is there, with its exit status; put & behind it to go on meanwhile.

        An exit status other than 0 is a failure. It is kept only with --cache-failures, and replayed only to
        who gives that too; else the next that waits runs CMD itself. What a signal ended, what was cut off
        since nobody read our output (as in `| head -1`), and what was asked to end, is never stored. HUP,
        INT, QUIT, TERM, USR1 and USR2 are passed on to CMD. If SIGKILL ends this process, CMD goes on
        until it writes. Processes that CMD leaves behind with its output open are waited for.

        Where the cache can't be used, whatever the reason (a full disk, no permission, no $HOME), or the key
        can't be made (--cwd, --modtime), one line on standard error says so, and CMD runs all the same; where
        there is no descriptor left, in the place of this process. Its words are bytes, and need not be UTF-8.

        Exit status: that of CMD, and where a signal ended it, this process ends by that signal too;
        126 CMD can't be executed; 127 there is no CMD; 64 usage; 74 the output can't be written.

        Examples:
          diskcache run --ttl 1h -- curl -sf https://example.org/rates.json
          diskcache run --ttl 10m --stale 1d --env USER -- kubectl get pods
          diskcache run --ttl never --cwd --modtime go.sum -- go list -m all
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let arguments = arguments.takingOperandBeforeCommand(for: "cache-failures") {
            (try? ExpirationOptions.lifetime($0)) != nil
        }
        let order = try RunOrder(arguments)
        Signal.ignoreBrokenPipes()
        var session = RunSession(.valueInTime, order, cache(order, arguments))
        end(try session.run { renew(order, in: $0, arguments) })
    }

    /// nil where it can't be used, whatever is wrong with it: the command runs all the same.
    private static func cache(_ order: RunOrder, _ arguments: Arguments) -> SharedCache? {
        do {
            if let obstacle = order.obstacle { throw obstacle }
            return try arguments.openCache()
        } catch {
            Notice.warnUncached(error)
            return nil
        }
    }

    /// Ends this process as the command ended.
    static func end(_ end: SpawnedProcess.End) -> Never {
        switch end {
        case .exited(let status): CurrentProcess.exit(status)
        case .killed(let signal): CurrentProcess.end(like: signal)
        }
    }

    /// Starts the process that renews a result, unless somebody is at it.
    private static func renew(_ order: RunOrder, in cache: SharedCache, _ arguments: Arguments) {
        do {
            let lock = try cache.flightLock(forKey: order.key)
            guard try cache.attempt(lock) == .acquired else { return }
            // The other process takes it: should several be started, the first renews it for all.
            lock.release()
            var request = SpawnRequest(bytes: order.refreshing(in: cache.path, arguments))
            // Nothing of ours that somebody may wait to see closed, and no terminal whose keys reach it.
            request.input = .null
            request.output = .null
            request.errors = .null
            request.isNewSession = true
            try request.startDetached()
        } catch {
            Notice.warn("the old result is not renewed: \(error)")
        }
    }
}

/// What `run --stale` starts in the background.
enum RefreshCommand: Command {
    static let name = "run-refresh"
    static let operands = RunCommand.operands
    static let summary = "renew a result, for run's own use"
    static let isHidden = true
    static let stopsAtOperand = true
    static let options = RunCommand.options
    static let details = ""

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        CurrentProcess.closeInheritedDescriptors()
        var order = try RunOrder(arguments)
        order.isSilent = true
        Signal.ignoreBrokenPipes()
        var session = RunSession(.refresh, order, try arguments.openCache())
        RunCommand.end(try session.run { _ in })
    }
}
