// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache info`.
enum InfoCommand: Command {
    static let name = "info"
    static let operands = "[KEY]"
    static let summary = "show everything known about a key, and why it is a hit or a miss"
    static let optionList = """
        -s, --stale  count an expired value that was stored with --stale as a hit
        --prefix TEXT  instead of KEY: show each key that begins with TEXT and has a value
        \(Option.scope)
        \(Option.json)
        """
    static let details = """
        Does not count as an access. info does not read the value, so it misses damage that does not change
        the value's length. The object file contains exactly the value's bytes; its name is their SHA-256, as
        `sha256sum` prints it. If the key is absent and there is an event log, info shows which process last
        removed the key. --prefix matches the full key, including the scope, and reads every entry.

        \(CacheEntry.help) Also entryPath, objectPath; state (hit, absent, nothing, unfinished,
        damagedMetadata, stale, expired, valueGone, damagedValue); lastRemoval (as in `diskcache log --json`).
        With --prefix, one object per line.

        Exit status: 0 a get would hit, as far as info can tell; 1 a miss, with the reason, or there is no
        cache; 64 usage; 73 not a directory; 77 permission; 78 not a cache.

        Examples:
          diskcache info page
          diskcache info --prefix thumbs/
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        if let prefix = try SelectionOptions.prefix(arguments) {
            try arguments.expectOperands(0...0, "either KEY or --prefix")
            return try explainAll(prefix, arguments)
        }
        try arguments.expectOperands(1...1, "KEY")
        let key = try arguments.key()
        guard let cache = try arguments.openExistingCache() else {
            let (path, digest) = (try arguments.directory(), Digest(of: Data(key.utf8)))
            try arguments.print(
                "key     \(key.escaped)\nstatus  a miss: there is no cache at \(path.escaped)\n",
                json: ["key": key, "keyDigest": digest.description, "state": "absent"]
            )
            return .miss
        }
        let explanation = try cache.directory.explanation(forKey: key)
        let paths = explanation.entry.map { cache.paths(of: $0) }
        try arguments.print(
            explanation.text(key: key, paths: paths, now: .now),
            json: explanation.json(key: key, paths: paths)
        )
        let isHit = explanation.state == .hit || explanation.state == .stale && arguments.has("stale")
        return isHit ? .done : .miss
    }

    /// Explains each stored key with a prefix; empty lines separate the explanations.
    private static func explainAll(_ prefix: String, _ arguments: Arguments) throws -> ExitStatus {
        guard let cache = try arguments.openExistingCache() else { return .miss }
        var isFirst = true
        var failure: CacheError?
        for result in try cache.entries(.prefix(prefix)) {
            switch result {
            case .failure(let error): failure = failure ?? error
            case .success(let entry):
                // The entry may not store its key, and only keys can be explained.
                guard let key = entry.key else { continue }
                let explanation = try cache.directory.explanation(forKey: key)
                let paths = explanation.entry.map { cache.paths(of: $0) }
                try arguments.print(
                    (isFirst ? "" : "\n") + explanation.text(key: key, paths: paths, now: .now),
                    json: explanation.json(key: key, paths: paths)
                )
                isFirst = false
            }
        }
        if let failure { throw failure }
        return isFirst ? .miss : .done
    }
}

extension KeyExplanation {
    fileprivate func text(key: String, paths: (entry: String, object: String)?, now: Date) -> String {
        var table = Table(.left, .left)
        func add(_ name: String, _ value: String?) {
            if let value { table.add(name, value.escaped) }
        }
        add("key", key)
        add("status", words(now))
        guard let entry, let paths else {
            add("key digest", keyDigest.description)
            return table.text
        }
        for (name, value) in entry.rows(now) { add(name, value) }
        add("key digest", entry.keyDigest.description)
        add("digest", entry.digest.description)
        add("entry file", paths.entry)
        add("object file", paths.object)
        return table.text
    }

    /// Returns why the key is a hit or a miss.
    private func words(_ now: Date) -> String {
        let expired = entry?.expires.map { "expired \(Quantity.ago($0, now))" }
        switch state {
        case .hit: return "a hit"
        case .absent:
            guard let removal = lastRemoval else { return "a miss: never stored, or removed" }
            return """
                a miss: removed \(Quantity.ago(removal.time, now)) by process \
                \(removal.process): \(LogCommand.words(removal.cause))
                """
        case .unfinished:
            return """
                a miss: its put is still running or was killed, or a copy lost its metadata; gc removes it
                """
        case .nothing: return "a miss: a computation found that there is no value"
        case .damagedMetadata: return "a miss: its metadata is damaged; gc removes it"
        case .stale: return "a miss, except for get --stale: \(expired ?? "expired")"
        case .expired:
            if let created = entry?.created, created > now {
                let ahead = Quantity.text(.seconds(created.timeIntervalSince(now).rounded(.up)))
                return "a miss for \(ahead): the clock that stored it was that far ahead"
            }
            return "a miss: \(expired ?? "expired"); gc removes it"
        case .valueGone: return "a miss: its value is gone; gc removes it"
        case .damagedValue(let length):
            return "a miss: its value is damaged, \(length) B long; a get removes it"
        }
    }

    /// Returns the entry, if it exists, and what a get of the key would return.
    fileprivate func json(key: String, paths: (entry: String, object: String)?) -> JSON.Object {
        let keyOnly: JSON.Object = ["key": key, "keyDigest": keyDigest.description]
        let rest: JSON.Object = [
            "entryPath": paths?.entry, "objectPath": paths?.object,
            // Only the name of the case, without the length of a damaged value.
            "state": String("\(state)".prefix { $0 != "(" }),
            "lastRemoval": lastRemoval?.json,
        ]
        return JSON.Object(entry?.json ?? keyOnly, rest)
    }
}
