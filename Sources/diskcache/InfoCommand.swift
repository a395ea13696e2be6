// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache info`.
enum InfoCommand: Command {
    static let name = "info"
    static let operands = "KEY"
    static let summary = "say everything that is known of a key, and why it is a hit or is not"
    static let options = [
        Option("stale", "s", help: "a value that has expired counts, if it was stored with --stale"),
        Option("order", "o", help: "also how many keys were used longer ago, and go before it"), .json,
    ]
    static let details = """
        Doesn't count as an access, and doesn't read the value: damage that leaves its length as it was is not
        seen. The object's file holds exactly the value's bytes: its name is their SHA-256, as `sha256sum`
        prints it.
        Of a key that is not there the event log, where one is kept, says who removed it last. --order looks
        at all keys, at two system calls each: a few seconds for a million, in constant memory.

        \(EntryDescription.help) Also entryPath and objectPath; state (hit, absent,
        unfinished, damagedMetadata, stale, expired, valueGone, damagedValue); lastRemoval (as `diskcache log`
        prints it); with --order evictionRank (usedLongerAgo, entries).

        Exit status: 0 a get would find it, as far as that is seen; 1 a miss, also where there is no cache; it
        is explained all the same; 64 usage; 73 DIR is no directory; 77 permission; 78 DIR holds other files.

        Examples:
          diskcache info page
          diskcache info page --order
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(1...1, "KEY")
        let key = try arguments.key()
        guard let cache = try arguments.openExistingCache() else {
            let path = try arguments.directory()
            try Output.print(arguments.has("json") ? noCacheJSON(key) : noCacheText(key, path))
            return .miss
        }
        let explanation = try cache.explanation(forKey: key)
        let rank = arguments.has("order") ? try cache.evictionRank(ofKey: key) : nil
        let paths = explanation.entry.map { cache.paths(of: $0) }
        if arguments.has("json") {
            let description = InfoDescription(explanation, key: key, paths: paths, rank: rank)
            try Output.print(JSON.line(description))
        } else {
            try Output.print(text(explanation, key: key, paths: paths, rank: rank, now: .now))
        }
        switch explanation.state {
        case .hit: return .done
        case .stale: return arguments.has("stale") ? .done : .miss
        default: return .miss
        }
    }

    private static func noCacheText(_ key: String, _ path: String) -> String {
        var table = Table(.left, .left)
        table.add("key", key.escaped)
        table.add("status", "a miss: there is no cache \(path.escaped)")
        return table.text
    }

    private static func noCacheJSON(_ key: String) throws -> String {
        try JSON.line([
            "key": key, "keyDigest": ContentDigest(of: Data(key.utf8)).description, "state": "absent",
        ])
    }

    static func text(
        _ explanation: KeyExplanation,
        key: String,
        paths: (entry: String, object: String)?,
        rank: EvictionRank?,
        now: Date
    ) -> String {
        var table = Table(.left, .left)
        table.add("key", key.escaped)
        table.add("status", words(explanation, now))
        if let rank { table.add("eviction", words(rank)) }
        guard let entry = explanation.entry, let paths else {
            table.add("key digest", explanation.keyDigest.description)
            return table.text
        }
        add(entry, paths, now, to: &table)
        return table.text
    }

    /// Why it is a hit or a miss.
    private static func words(_ explanation: KeyExplanation, _ now: Date) -> String {
        let expired = explanation.entry?.expires.map { "expired \(Quantity.ago($0, now))" }
        switch explanation.state {
        case .hit: return "a hit"
        case .absent:
            guard let removal = explanation.lastRemoval else {
                return "a miss: nothing is stored under it: it never was, or was removed"
            }
            return """
                a miss: removed \(Quantity.ago(removal.time, now)) by process \
                \(removal.process): \(LogCommand.words(removal.cause))
                """
        case .unfinished:
            return """
                a miss: its put has just begun, or was killed, or its metadata was lost in copying; gc removes it then
                """
        case .damagedMetadata: return "a miss: its metadata is damaged; gc removes it"
        case .stale: return "a miss but for get --stale: \(expired ?? "expired")"
        case .expired: return "a miss: \(expired ?? "expired"); gc removes it"
        case .valueGone: return "a miss: its value is gone; gc removes it"
        case .damagedValue(let length):
            return "a miss: its value is damaged, \(length) B long; a get removes it"
        }
    }

    private static func words(_ rank: EvictionRank) -> String {
        "\(Quantity.grouped(rank.usedLongerAgo)) of \(Quantity.grouped(rank.entries, "key")) "
            + "were used longer ago, and go first"
    }

    private static func add(
        _ entry: CacheEntry,
        _ paths: (entry: String, object: String),
        _ now: Date,
        to table: inout Table
    ) {
        func add(_ name: String, _ value: String?) {
            if let value { table.add(name, value.escaped) }
        }
        add("size", size(entry.size))
        add("created", past(entry.created, now))
        add("last access", entry.lastAccess.map { past($0, now) })
        add("expires", entry.expires.map { future($0, now) } ?? "never")
        add("extends on access", entry.extendsOnAccess.map { Quantity.text($0) })
        add("stale until", entry.staleUntil.map { future($0, now) })
        add("cost", entry.attributes.cost.map { "\($0)" })
        add("etag", entry.attributes.entityTag)
        add("last modified", entry.attributes.lastModified)
        add("content type", entry.attributes.contentType)
        for tag in entry.attributes.tags { add("tag", tag) }
        for (name, value) in entry.attributes.metadata.sorted(by: { $0.key < $1.key }) {
            add("meta", "\(name)=\(value)")
        }
        add("key digest", entry.keyDigest.description)
        add("digest", entry.digest.description)
        add("entry file", paths.entry)
        add("object file", paths.object)
    }

    private static func size(_ bytes: Int) -> String {
        bytes < 1024 ? "\(bytes) B" : "\(Quantity.text(bytes: Int64(bytes))) (\(bytes) B)"
    }

    private static func past(_ moment: Date, _ now: Date) -> String {
        "\(moment.formatted(.iso8601)) (\(Quantity.ago(moment, now)))"
    }

    private static func future(_ moment: Date, _ now: Date) -> String {
        moment < now
            ? past(moment, now) : "\(moment.formatted(.iso8601)) (in \(Quantity.text(from: now, to: moment)))"
    }
}

/// A key as `info` writes it in JSON: the entry, if there is one, and what a get makes of it.
private struct InfoDescription: Encodable {
    private let explanation: KeyExplanation
    private let key: String
    private let entry: EntryDescription?
    private let rank: EvictionRank?

    init(
        _ explanation: KeyExplanation,
        key: String,
        paths: (entry: String, object: String)?,
        rank: EvictionRank?
    ) {
        self.explanation = explanation
        self.key = key
        self.rank = rank
        var entry = explanation.entry.map { EntryDescription($0) }
        entry?.entryPath = paths?.entry
        entry?.objectPath = paths?.object
        self.entry = entry
    }

    private enum Key: String, CodingKey {
        case key, keyDigest, state, lastRemoval, evictionRank
    }

    func encode(to encoder: any Encoder) throws {
        try entry?.encode(to: encoder)
        var container = encoder.container(keyedBy: Key.self)
        if entry == nil {
            try container.encode(key, forKey: .key)
            try container.encode(explanation.keyDigest.description, forKey: .keyDigest)
        }
        try container.encode(state, forKey: .state)
        let removal = explanation.lastRemoval.map { LogCommand.Description($0) }
        try container.encodeIfPresent(removal, forKey: .lastRemoval)
        try container.encodeIfPresent(rank, forKey: .evictionRank)
    }

    private var state: String {
        switch explanation.state {
        case .hit: "hit"
        case .absent: "absent"
        case .unfinished: "unfinished"
        case .damagedMetadata: "damagedMetadata"
        case .stale: "stale"
        case .expired: "expired"
        case .valueGone: "valueGone"
        case .damagedValue: "damagedValue"
        }
    }
}
