// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache serve`.
enum ServeCommand: Command {
    static let name = "serve"
    static let summary = "answer requests on standard input, for programs in other languages"
    static let optionList = """
        --memory SIZE  keep up to SIZE of values in memory; 0: none (default 64M)
        --max-value SIZE  refuse values on standard input larger than SIZE (default 256M)
        """
    static let details = """
        Each request on standard input, and each answer on standard output, is a JSON object on one line.
        Answers come in the order of the requests. If a line has "length", that many bytes follow it. An
        answer repeats the id of its request, if there is one. You can send many requests before you read the
        answers, but you must read the answers.

          {"op":"put","id":1,"key":"greeting","length":5,"ttl":"1h"}
          hello{"op":"get","id":2,"key":"greeting"}

        is answered with

          {"id":1,"stored":true}
          {"found":true,"id":2,"length":5,"source":"memory"}
          hello

        Operations: get (key or keys; stale, entry, file), put (key; length or file; ttl, expiresAt, renew,
        staleFor, ifAbsent, etag, lastModified, contentType, tags, metadata), remove (key or keys), has, entry
        (key; stale), touch (key; ttl, expiresAt, renew), removeAll (prefix, tag, or "all": true), stats
        (scan), hello. An error is also an answer: {"error":{"code":"noSpace","message":"..."},"id":1}.
        Unknown fields are ignored. A line can have up to 1 MiB. See the article ServeProtocol.

        By default, the values in memory use at most an eighth of the memory of the machine or control group,
        and a value on standard input at most a quarter.

        An answered request is complete: a put is stored even if serve is killed afterward. On SIGTERM or
        SIGINT, serve answers the requests that it has read, and exits. Creates the directory if it is
        missing.

        Exit status: 0 the input ended, or SIGTERM or SIGINT; 64 usage; 65 the input is not a request, as the
        last answer says; 73 can't create the directory; 74 the input can't be read, or nobody reads the
        answers; 77 permission; 78 not a cache.

        Example:
          printf '{"op":"has","key":"page"}\\n' | diskcache serve
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        arguments.shareIfConfigured()
        let allowance = MemoryAllowance.bytes() ?? .max
        let memory =
            try arguments.value("memory", as: Quantity.size)
            ?? min(.mebibytes(64), ByteCount(allowance / 8))
        let longest =
            try arguments.value("max-value", as: Quantity.size)
            ?? min(.mebibytes(256), ByteCount(allowance / 4))
        var configuration = try arguments.configuration()
        configuration.memory = CacheConfiguration.Memory(costLimit: memory)
        // Lives as long as the program that it serves, so it maintains the directory as that program would.
        configuration.janitor = CacheConfiguration.Janitor()
        // While a put waits for space, later requests wait, too; a minute would be too long.
        configuration.roomPatience = .seconds(5)
        // Before other threads start, because a thread without blocked signals could receive them.
        let end = try doing("receive signals") { () throws(Errno) in try ShutdownSignal() }
        // If the output has no reader, the cache must still be closed properly.
        Signal.brokenPipe.ignore()
        let cache = try arguments.open(arguments.directory(), configuration, sharing: true)
        // Shorter than the time limit of `ShutdownSignal`.
        defer { cache.close(deadline: .seconds(3)) }
        let operations = ServeOperations(cache: cache, longestValue: Int(clamping: longest.bytes))
        var loop = ServeLoop(operations, until: end)
        return try loop.run()
    }
}
