// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache get`.
enum GetCommand: Command {
    static let name = "get"
    static let operands = "KEY"
    static let summary = "write a key's value to standard output"
    static let optionList = """
        -o, --output FILE  write to this file, replacing it in one step
        -s, --stale  also return an expired value that was stored with --stale
        """
    static let details = """
        The whole value is checked before its first byte is written. A miss writes nothing and leaves FILE
        alone. `-o -` is standard output. A key that begins with - needs -- before it.

        Exit status: 0 found; 1 a miss: never stored, expired, removed or damaged, or there is no cache;
        64 usage; 73 not a directory; 74 the output can't be written; 77 permission; 78 not a cache.

        Examples:
          diskcache get page -o page.html ||
            { curl -sfo page.html https://example.org/ && diskcache put page page.html --ttl 15m; }
          diskcache get thumb:17 -o thumb.png
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let key = try arguments.key()
        if arguments.value("output") == "" {
            throw Failure.usage("get: --output: the file name is empty: give FILE")
        }
        if let path = arguments.value("output"), let number = Terminal.descriptor(named: path),
            !Terminal.isOpen(number)
        {
            // From now on this number may become one of the cache's own descriptors.
            throw Failure(.inputOutput, "get: write \(path): it is not open: open it first")
        }
        guard let cache = try arguments.openExistingCache() else { return .miss }
        let reading = ReadOptions(acceptsStale: arguments.has("stale"))
        if let path = arguments.value("output"), path != "-" {
            do throws(CacheError) {
                let entry = try cache.copyValue(forKey: key, toFile: path, reading: reading)
                return entry == nil ? .miss : .done
            } catch {
                // A get writes nothing into the cache: it is the output that is full or can't be written.
                guard [.noSpace, .readOnly].contains(error.code) else { throw error }
                throw Failure(.inputOutput, error.message)
            }
        }
        // Not copyValue(forKey:toDescriptor:): if the output's disk is full, the cache isn't.
        let found: Void? = try cache.withDescriptor(forKey: key, reading: reading) { value, _ in
            try FileDescriptor.duplicate(Terminal.standardOutput)
                .copyAll(from: FileDescriptor.duplicate(value))
        }
        return found == nil ? .miss : .done
    }
}
