// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache get`.
enum GetCommand: Command {
    static let name = "get"
    static let operands = "[KEY]"
    static let summary = "write a key's value to standard output"
    static let optionList = """
        -o, --output FILE  write to FILE, replacing it atomically
        -s, --stale  also return an expired value that was stored with --stale
        --digest DIGEST  instead of KEY: get the value with this SHA-256
        \(Option.scope)
        """
    static let details = """
        get checks the whole value before it writes the first byte. A miss writes nothing and leaves FILE
        unchanged. `-o -` is standard output. Put -- before a key that begins with -.

        With --digest, get writes the value with this SHA-256, whatever its key, even if it has expired or was
        replaced, until a collection removes it. `sha256sum`, `put --json` and `info` print the digest. get
        reads the whole value into memory.

        If config.json names remote stores, get looks up a missing value there, and stores it here; not with
        --digest. This takes no longer than remote.limit (see `diskcache config --help`).

        To get many values in one process, use `diskcache serve`.

        Exit status: 0 found; 1 a miss: never stored, expired, removed or damaged, or there is no cache;
        64 usage; 73 not a directory; 74 the output can't be written; 77 permission; 78 not a cache.

        Examples:
          diskcache get page -o page.html ||
            { curl -sfo page.html https://example.org/ && diskcache put page page.html --ttl 15m; }
          diskcache get thumb:17 -o thumb.png
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let digest = try arguments.value("digest", as: Quantity.digest)
        if digest == nil {
            try arguments.expectOperands(1...1, "KEY")
        } else {
            try arguments.expectOperands(0...0, "either KEY or --digest")
        }
        let key = try digest == nil ? arguments.key() : ""
        if arguments.value("output") == "" {
            throw Failure.usage("get: --output: the file name is empty: give FILE")
        }
        if let path = arguments.value("output"), let number = Terminal.descriptor(named: path),
            !Terminal.isOpen(number)
        {
            // A descriptor that is not open could be reused for a file of the cache.
            throw Failure(.inputOutput, "get: write \(path): it is not open: open it first")
        }
        guard let cache = try arguments.openExistingCache(sharing: true) else { return .miss }
        if let digest {
            guard let data = try cache.directory.data(for: digest) else { return .miss }
            try write(data, to: arguments.value("output") ?? "-")
            return .done
        }
        if try write(key, of: cache, arguments) { return .done }
        // `diskcache-net` has already queried the other machines; `diskcache` restarts there.
        arguments.shareIfConfigured()
        return .miss
    }

    /// Writes the value; returns false if it is missing.
    private static func write(_ key: String, of cache: SharedCache, _ arguments: Arguments) throws -> Bool {
        let reading = ReadOptions(acceptsStale: arguments.has("stale"))
        if let path = arguments.value("output"), path != "-" {
            do throws(CacheError) {
                return try cache.copyValue(forKey: key, toFile: path, reading: reading) != nil
            } catch {
                // A get does not write to the cache, so the output is full or read-only.
                guard [.noSpace, .readOnly].contains(error.code) else { throw error }
                throw Failure(.inputOutput, error.message)
            }
        }
        // copyValue(forKey:toDescriptor:) would report a full disk of the output as an error of the cache.
        let found: Void? = try cache.withDescriptor(forKey: key, reading: reading) { value, _ in
            try FileDescriptor.duplicate(Terminal.standardOutput)
                .copyAll(from: FileDescriptor.duplicate(value))
        }
        return found != nil
    }

    /// Writes a value that is in memory to the user's file, or to standard output for "-".
    private static func write(_ data: Data, to path: String) throws {
        if path == "-" {
            return try FileDescriptor.borrowing(Terminal.standardOutput) { (file) throws(Errno) in
                try file.writeAll(data.span)
            }
        }
        do throws(Errno) {
            try OutputFile.write(path) { (output) throws(Errno) in try output.writeAll(data.span) }
        } catch {
            let isForbidden = error == .accessDenied || error == .notPermitted
            let message = "get: write \(path): \(error): give a file that can be written"
            throw Failure(isForbidden ? .permission : .inputOutput, message)
        }
    }
}
