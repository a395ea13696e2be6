// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache get`.
enum GetCommand: Command {
    static let name = "get"
    static let operands = "KEY"
    static let summary = "write a key's value to standard output"
    static let options = [
        Option("output", "o", "FILE", help: "to this file, which is replaced in one step"),
        Option("stale", "s", help: "also a value that has expired, if it was stored with --stale"),
    ]
    static let details = """
        All of the value is checked before its first byte is written. A miss writes nothing and leaves FILE
        alone. `-o -` is standard output, too. A key that begins with - needs -- before it.

        Exit status: 0 found; 1 a miss: never stored, expired, removed, damaged, or no cache there at all;
        64 usage; 73 DIR is no directory; 74 the output can't be written; 77 permission; 78 the directory is no
        cache.

        Examples:
          diskcache get page -o page.html ||
            { curl -sfo page.html https://example.org/ && diskcache put page page.html --ttl 15m; }
          diskcache get thumb:17 -o thumb.png
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(1...1, "KEY")
        let key = try arguments.key()
        if arguments.value("output") == "" { throw Failure.usage("get: --output names no file: give FILE") }
        if let path = arguments.value("output"), let number = Terminal.descriptor(named: path),
            !Terminal.isOpen(number)
        {
            // What gets this number from now on is the cache's own.
            throw Failure(
                .inputOutput,
                "get: write \(path): it is not open: give an open one"
            )
        }
        guard let cache = try arguments.openExistingCache() else { return .miss }
        let isStaleWanted = arguments.has("stale")
        if let path = arguments.value("output"), path != "-" {
            return try copy(key, from: cache, to: path, isStaleWanted)
        }
        // Not copyValue(forKey:toDescriptor:): a full disk behind the output is no full cache.
        let found: Void? = try cache.withDescriptor(forKey: key, allowingStale: isStaleWanted) { value, _ in
            try FileDescriptor.duplicate(Terminal.standardOutput)
                .copyAll(from: FileDescriptor.duplicate(value))
        }
        return found == nil ? .miss : .done
    }

    private static func copy(
        _ key: String,
        from cache: SharedCache,
        to path: String,
        _ isStaleWanted: Bool
    ) throws -> ExitStatus {
        do throws(CacheError) {
            let entry = try cache.copyValue(forKey: key, toFile: path, allowingStale: isStaleWanted)
            return entry == nil ? .miss : .done
        } catch {
            // A get writes nothing into the cache: it is the output that is full, or can't be written.
            guard [.noSpace, .readOnly].contains(error.code) else { throw error }
            throw Failure(.inputOutput, error.message)
        }
    }
}
