// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache config`.
enum ConfigCommand: Command {
    static let name = "config"
    static let operands = "[get NAME | set NAME VALUE | unset NAME]"
    static let operandChoices = [["get", "set", "unset"], Setting.all.map(\.name)]
    static let summary = "show or change the limits of the directory"
    static let options = [
        Option("force", "f", help: "set: also an age, length or min-free that leaves nothing"), Option.json,
    ]
    static let details = """
        Limits belong to the directory, in its file config.json: all processes that use it follow a change
        within a second. At 95 % of a limit the least recently used values are evicted until 90 % are left, by
        any process that has the cache open with the library's defaults, or by `diskcache gc`. A put that would
        pass 100 % makes room itself or waits for it, a minute at most. So a limit should be a tenth above what
        is to be kept.

          max-size        bytes on disk, as du counts them, the cache's own files included: 512M, 2G
          max-entries     keys
          min-free        what is to stay available on the file system: 10%, 5G
          max-age         how long ago a value may have been stored: 30d
          max-idle        how long ago a value may have been used last: 7d
          max-value-size  bytes of the longest value that is accepted: 64M
          event-log       bytes that the log of removals may take, see diskcache log: 1M; 0: no log
          assume-local    true: all who use the directory are on this machine, though its file system is not known
                          or is FUSE; counts for processes that open it afterwards

        `get` prints the value alone, and nothing where there is no such limit; `set` makes the cache where
        there is none. It refuses a limit of 0, and a min-free of all that the file system has or more: nothing
        can be kept with it, and all that is there goes. --force sets max-age, max-idle, max-value-size and
        min-free all the same. `unset` takes a limit away.

        JSON, and config.json: maximumSize, maximumEntries, minimumFree (bytes, or "10%"), maximumAge and
        maximumIdleTime (seconds), maximumValueSize, eventLog, assumeLocal; what is not limited is
        left out.

        Exit status: 0 done; 1 get: there is no such limit; 64 usage; 73 DIR is no directory, or a read-only
        file system; 75 another process changes them; 77 permission; 78 there is no cache, or config.json is
        damaged.

        Examples:
          diskcache config set max-size 2G
          diskcache config get max-size
          diskcache config unset max-idle
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        guard let verb = arguments.operands.first else { return try list(arguments) }
        switch verb {
        case "get":
            try arguments.expectOperands(2...2, "get NAME")
            return try get(try setting(arguments), arguments)
        case "set":
            try arguments.expectOperands(3...3, "set NAME VALUE")
            let (setting, text) = (try setting(arguments), arguments.operands[2])
            var limits = CacheLimits()
            // What is no value is refused before a cache is made for it.
            try setting.parse(text, &limits)
            let isMeant = arguments.has("force")
            if !isMeant, setting.keepsNothing(limits) { throw refusal(setting, text) }
            let cache = try arguments.openCache()
            if !isMeant, case .bytes(let floor)? = limits.minimumFree,
                floor.bytes >= (try Directory(opening: cache.path).descriptor.fileSystemSpace()).totalBytes
            {
                throw refusal(setting, text)
            }
            return try change(cache, arguments) { setting.copy(limits, &$0) }
        case "unset":
            try arguments.expectOperands(2...2, "unset NAME")
            let setting = try setting(arguments)
            return try change(try arguments.requireCache(), arguments) { setting.copy(CacheLimits(), &$0) }
        default:
            throw Failure.usage(
                "config: unknown word '\(verb)': give get, set or unset, or nothing for a list"
            )
        }
    }

    private static func refusal(_ setting: Setting, _ text: String) -> Failure {
        // The library refuses a size and a number of keys with which nothing can be kept, meant or not.
        let way = ["max-size", "max-entries"].contains(setting.name) ? "" : ", to mean it --force"
        return .usage(
            """
            config: \(setting.name): with \(text) nothing can be kept, and all that is there goes: for no limit \
            `diskcache config unset \(setting.name)`, to empty the cache once `diskcache clear`\(way)
            """
        )
    }

    private static func setting(_ arguments: Arguments) throws(Failure) -> Setting {
        let name = arguments.operands[1]
        if let setting = Setting.all.first(where: { $0.name == name }) { return setting }
        let names = Setting.all.map(\.name).joined(separator: ", ")
        throw .usage("config: unknown limit '\(name)': give one of \(names)")
    }

    private static func list(_ arguments: Arguments) throws -> ExitStatus {
        let limits = try arguments.requireCache().limits()
        try print(limits, arguments)
        return .done
    }

    private static func get(_ setting: Setting, _ arguments: Arguments) throws -> ExitStatus {
        let limits = try arguments.requireCache().limits()
        guard let value = setting.exactText(limits) else {
            if arguments.has("json") { try Output.print("{}\n") }
            return .miss
        }
        if arguments.has("json") {
            var only = CacheLimits()
            setting.copy(limits, &only)
            try Output.print(JSON.line(only))
        } else {
            try Output.print(value + "\n")
        }
        return .done
    }

    private static func change(
        _ cache: SharedCache,
        _ arguments: Arguments,
        _ change: (inout CacheLimits) -> Void
    ) throws -> ExitStatus {
        let limits = try cache.updateLimits { (limits) throws(CacheError) in change(&limits) }
        if arguments.has("json") { try print(limits, arguments) }
        return .done
    }

    private static func print(_ limits: CacheLimits, _ arguments: Arguments) throws {
        if arguments.has("json") { return try Output.print(JSON.line(limits)) }
        var table = Table(.left, .left)
        for setting in Setting.all { table.add(setting.name, setting.text(limits) ?? "-") }
        try Output.print(table.text)
    }
}

/// One limit, as the command names it.
struct Setting: Sendable {
    let name: String
    /// Reads a value.
    let parse: @Sendable (String, inout CacheLimits) throws(Failure) -> Void
    /// Makes that limit of one the same as the other's.
    let copy: @Sendable (CacheLimits, inout CacheLimits) -> Void
    /// For people; nil: there is no such limit.
    let text: @Sendable (CacheLimits) -> String?
    /// As `set` takes it, without loss.
    let exactText: @Sendable (CacheLimits) -> String?

    /// Whether with this limit nothing can be kept.
    func keepsNothing(_ limits: CacheLimits) -> Bool {
        var only = CacheLimits()
        copy(limits, &only)
        if case .percent(let share) = only.minimumFree, share >= 100 { return true }
        for span in [only.maximumAge, only.maximumIdleTime] {
            if let span, span < .milliseconds(1) { return true }
        }
        return only.maximumSize?.bytes == 0 || only.maximumEntries == 0 || only.maximumValueSize?.bytes == 0
    }

    /// In the order in which they are shown.
    static let all: [Setting] = [
        size("max-size", \.maximumSize),
        make("max-entries", \.maximumEntries, { (text) throws(Failure) in try Quantity.count(text) }) {
            Quantity.grouped($0)
        } exact: {
            "\($0)"
        },
        make("min-free", \.minimumFree, { (text) throws(Failure) in try Quantity.freeSpace(text) }) {
            Quantity.text($0)
        } exact: {
            if case .bytes(let count) = $0 { "\(count.bytes)" } else { Quantity.text($0) }
        },
        span("max-age", \.maximumAge),
        span("max-idle", \.maximumIdleTime),
        size("max-value-size", \.maximumValueSize),
        size("event-log", \.eventLogSize, isZeroNone: true),
        assumeLocal,
    ]

    private static let assumeLocal = Setting(
        name: "assume-local",
        parse: { (text, limits) throws(Failure) in
            guard let value = ["true": true, "false": false][text] else {
                throw .usage("config: assume-local: \(text.escaped) is no answer: give true or false")
            }
            limits.assumesLocal = value
        },
        // nil would leave it as it is.
        copy: { $1.assumesLocal = $0.assumesLocal ?? false },
        text: { $0.assumesLocal.map { "\($0)" } },
        exactText: { $0.assumesLocal.map { "\($0)" } }
    )

    private typealias Path<Value> = WritableKeyPath<CacheLimits, Value?> & Sendable

    private static func make<Value: Sendable>(
        _ name: String,
        _ path: any Path<Value>,
        _ parse: @escaping @Sendable (String) throws(Failure) -> Value?,
        text: @escaping @Sendable (Value) -> String,
        exact: @escaping @Sendable (Value) -> String
    ) -> Setting {
        Setting(
            name: name,
            parse: { (text, limits) throws(Failure) in
                do throws(Failure) {
                    limits[keyPath: path] = try parse(text)
                } catch {
                    throw .usage("config: \(name): \(error.message)")
                }
            },
            copy: { $1[keyPath: path] = $0[keyPath: path] },
            text: { $0[keyPath: path].map(text) },
            exactText: { $0[keyPath: path].map(exact) }
        )
    }

    private static func size(_ name: String, _ path: any Path<ByteCount>, isZeroNone: Bool = false) -> Setting
    {
        make(name, path) { (text) throws(Failure) in
            let size = try Quantity.size(text)
            return isZeroNone && size.bytes == 0 ? nil : size
        } text: {
            Quantity.text(bytes: $0.bytes)
        } exact: {
            "\($0.bytes)"
        }
    }

    private static func span(_ name: String, _ path: any Path<Duration>) -> Setting {
        make(name, path) { (text) throws(Failure) in
            try Quantity.duration(text)
        } text: {
            Quantity.text($0)
        } exact: {
            "\($0.inSeconds)s"
        }
    }
}
