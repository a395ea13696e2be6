// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache put`.
enum PutCommand: Command {
    static let name = "put"
    static let operands = "KEY [FILE]"
    static let summary = "store a file, or standard input, under a key"
    static let optionList = """
        \(ExpirationOptions.list)
        -s, --stale SPAN  stale period: how long `get --stale` returns the expired value
        --tag TAG…  attach TAG to the value, for `rm --tag`
        --etag TEXT  the value's entity tag (ETag)
        --last-modified TEXT  the value's Last-Modified
        --content-type TYPE  the value's media type
        -m, --meta NAME=TEXT…  any other metadata
        --if-absent  store only if the key has no value (reads the input into memory)
        --digest DIGEST  store only if the value has this SHA-256
        \(Option.scope)
        \(Option.json)
        """
    static let exclusive = ExpirationOptions.exclusive
    static let details = """
        Without FILE, or if FILE is -, put reads standard input. Creates the directory if it is missing. After
        put returns, every process gets the new value. put replaces the old value atomically; if put fails,
        the old value stays. Equal values are stored once. If config.json is damaged, put stores nothing,
        because the limits are unknown. In a pipeline, put can't tell whether the command before it failed:
        let a command that may fail halfway write to a file first. Put -- before a key that begins with -.

        SPAN is a number with a unit (ms, s, m, h, d or w), or several of them, as in 1h30m; a number alone is
        in seconds. TIME can be a date alone, which means midnight UTC. The latest TIME is 2262-04-11. Without
        --ttl and --expires-at, the value expires after $DISKCACHE_TTL, or never if that is not set.

        If config.json names remote stores that this machine may write to, put also sends the value there. It
        waits up to a second for that; a later process sends the rest.

        --digest takes the 64 digits that `sha256sum` prints before the file name. If the value is truncated
        or changed, put refuses it, and the old value stays.

        \(CacheEntry.help)

        Exit status: 0 stored; 1 with --if-absent: the key already has a value, which stays; 64 usage; 65 the
        value does not have the SHA-256 of --digest; 73 no space, not a directory, or the directory can't be
        created or written; 74 FILE can't be read; 75 timed out waiting for a lock, or for space within the
        limits; 77 permission; 78 not a cache.

        Examples:
          curl -sfo page.html https://example.org/ && diskcache put page page.html --ttl 15m
          date | diskcache put now --ttl 1s
          diskcache put thumb:17 thumb.png --ttl 7d --renew --tag user:1 --content-type image/png
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let key = try arguments.key()
        let terms = try terms(arguments)
        let digest = try arguments.value("digest", as: Quantity.digest)
        // Before standard input is read, because the restarted command must read it.
        arguments.shareIfConfigured()
        // Before the cache is opened, so that no directory is created if the file is missing.
        let input = try open(arguments.operands.dropFirst().first)
        let cache = try arguments.openCache(sharing: true)
        var stored: CacheEntry?
        if arguments.has("if-absent") {
            // Checked before the whole value is read into memory; `putIfAbsent` detects a value that is stored later.
            if try cache.contains(forKey: key) { return .miss }
            let data = try contents(input)
            if let digest { try check(Digest(of: data), is: digest) }
            guard try cache.putIfAbsent(data, forKey: key, options: terms) else { return .miss }
            // For --json. There is none if the value has expired, or was removed, in the meantime.
            stored = try cache.entry(forKey: key, reading: ReadOptions(acceptsStale: true))
        } else if let digest {
            stored = try put(input, with: digest, cache, key, terms)
        } else {
            stored = try cache.put(contentsOfDescriptor: input.rawValue, forKey: key, options: terms)
        }
        if let stored { try arguments.print("", json: stored.json) }
        return .done
    }

    /// Stores the input if it has this digest; throws otherwise.
    private static func put(
        _ input: borrowing FileDescriptor,
        with digest: Digest,
        _ cache: SharedCache,
        _ key: String,
        _ terms: PutOptions
    ) throws -> CacheEntry {
        var found = digest
        do throws(CacheError) {
            return try cache.put(contentsOfDescriptor: input.rawValue, forKey: key, options: terms) {
                (read) throws(CacheError) in
                found = read
                // The message is replaced below.
                if read != digest { throw CacheError(.invalidArgument, "") }
            }
        } catch {
            try check(found, is: digest)
            throw error
        }
    }

    private static func check(_ found: Digest, is digest: Digest) throws(Failure) {
        if found == digest { return }
        let advice = "nothing was stored: obtain the value again, or correct --digest"
        throw Failure(.dataError, "put: the value's SHA-256 is \(found), not \(digest): \(advice)")
    }

    /// Returns the options of the put that the command line sets.
    private static func terms(_ arguments: Arguments) throws(Failure) -> PutOptions {
        let expires = try ExpirationOptions.expiration(arguments) { () throws(Failure) in
            try ExpirationOptions.usual()
        }
        return PutOptions(
            expires: expires,
            onAccess: arguments.has("renew") ? .renew : nil,
            staleFor: try arguments.value("stale", as: Quantity.duration),
            entityTag: arguments.value("etag"),
            lastModified: arguments.value("last-modified"),
            contentType: arguments.value("content-type"),
            tags: try arguments.tags(),
            metadata: try metadata(arguments.all("meta"))
        )
    }

    /// Parses metadata of the form "name=text".
    private static func metadata(_ words: [String]) throws(Failure) -> [String: String] {
        var metadata: [String: String] = [:]
        for word in words {
            guard let mark = word.firstIndex(of: "="), mark != word.startIndex else {
                throw .usage("put: --meta: '\(word)' has no name: write it like name=text")
            }
            let name = String(word[..<mark])
            guard metadata[name] == nil else {
                throw .usage("put: --meta: '\(name)' is given twice: give it once")
            }
            metadata[name] = String(word[word.index(after: mark)...])
        }
        return metadata
    }

    // MARK: Input

    /// Opens the user's file, or standard input for nil or "-".
    private static func open(_ path: String?) throws(Failure) -> FileDescriptor {
        let isStandard = path == nil || path == "-"
        if path == "" { throw .usage("put: the file name is empty: give FILE, or - for standard input") }
        do throws(Errno) {
            let file =
                isStandard
                ? try FileDescriptor.duplicate(Terminal.standardInput)
                : try FileDescriptor(opening: path ?? "", .readOnly)
            if try file.status().kind == .directory { throw .isDirectory }
            // A closed standard input was replaced by a descriptor that can't be read; it must not count as an empty
            // value.
            if try !file.isReadable() { throw .badDescriptor }
            return file
        } catch {
            let isForbidden = error == .accessDenied || error == .notPermitted
            throw Failure(
                isForbidden ? .permission : .inputOutput,
                "read \(isStandard ? "standard input" : path ?? ""): \(error): give a file that can be read"
            )
        }
    }

    /// Reads the whole file.
    private static func contents(_ file: borrowing FileDescriptor) throws(Failure) -> Data {
        do throws(Errno) {
            return try file.readToEnd()
        } catch {
            throw Failure(.inputOutput, "read the value: \(error): nothing was stored: try again")
        }
    }
}
