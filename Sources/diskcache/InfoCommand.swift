// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache info`.
enum InfoCommand: Command {
    static let name = "info"
    static let operands = "KEY"
    static let summary = "say everything that is known of a key"
    static let options = [
        Option("stale", "s", help: "also of a value that has expired, if it was stored with --stale"), .json,
    ]
    static let details = """
        Is no access, and does not read the value. The object's file holds exactly the value's bytes: its
        name is their SHA-256, as `sha256sum` prints it.

        \(EntryDescription.help) Also entryPath and objectPath.

        Exit status: 0 found; 1 a miss; 64 usage; 73 no directory; 77 permission; 78 no cache.

        Example:
          diskcache info page
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(1...1, "KEY")
        let key = try arguments.key()
        guard let cache = try arguments.openExistingCache(),
            let entry = try cache.entry(forKey: key, allowingStale: arguments.has("stale"))
        else { return .miss }
        let paths = cache.paths(of: entry)
        if arguments.has("json") {
            var description = EntryDescription(entry)
            (description.entryPath, description.objectPath) = (paths.entry, paths.object)
            try Output.print(JSON.line(description))
        } else {
            try Output.print(text(entry, paths, now: .now))
        }
        return .done
    }

    static func text(_ entry: CacheEntry, _ paths: (entry: String, object: String), now: Date) -> String {
        var table = Table(.left, .left)
        func add(_ name: String, _ value: String?) {
            if let value { table.add(name, value.escaped) }
        }
        add("key", entry.name)
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
        return table.text
    }

    private static func size(_ bytes: Int) -> String {
        bytes < 1024 ? "\(bytes) B" : "\(Quantity.text(bytes: Int64(bytes))) (\(bytes) B)"
    }

    private static func past(_ moment: Date, _ now: Date) -> String {
        "\(moment.formatted(.iso8601)) (\(Quantity.text(from: moment, to: now)) ago)"
    }

    private static func future(_ moment: Date, _ now: Date) -> String {
        moment < now
            ? past(moment, now) : "\(moment.formatted(.iso8601)) (in \(Quantity.text(from: now, to: moment)))"
    }
}
