// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache config`.
enum ConfigCommand: Command {
    static let name = "config"
    static let operands = "[get NAME | set NAME VALUE | unset NAME]"
    static let operandCount = 0...3
    static let operandChoices = [
        ["get", "set", "unset"], Setting.all.map(\.name) + RemoteSetting.all.map(\.name),
    ]
    static let summary = "show or change the directory's limits and remote stores"
    static let optionList = """
        -f, --force  set: accept an age, value size or min-free that allows no values
        \(Option.json)
        """
    static let details = """
        Limits belong to the directory and are stored in its file config.json. All processes that use the
        directory follow a change within a second. At 95 % of a limit, any process that has the cache open
        with the library's defaults evicts the least recently used values down to 90 %; `diskcache gc` evicts
        what exceeds 100 %. A put that would exceed 100 % evicts values itself, or waits for space, at most
        for a minute. So set a limit a tenth above what you want to keep.

          max-size        size on disk, as du counts it, including the cache's own files: 512M, 2G
          max-entries     number of keys
          min-free        space that must stay free on the file system: 10%, 5G
          max-age         longest time since a value was stored: 30d
          max-idle        longest time since a value was last used: 7d
          max-value-size  largest value accepted, in bytes: 64M
          event-log       size of the log of removals (see diskcache log): 1M, at least 64K; 0 turns it off
          assume-local    true: only this machine uses the directory, although its file system is unknown or
                          FUSE; takes effect in processes that open the cache afterward
          share-memory    false: use no file in /dev/shm, where XFS, Btrfs and overlay need one; for
                          containers that each have a /dev/shm; limits then hold only when a collection
                          ends

        \(RemoteSetting.help)

        New values are sent to these servers, and missing values are fetched from them. If the servers are
        down or slow, the cache works as it does without them. This applies to programs that open the cache
        with the library DiskCacheRemote, and to the commands get, put, rm, run and serve if diskcache-net is
        installed. To check the servers, use `diskcache doctor --remote`. A change applies to processes that
        open the cache afterward.

        `get` prints only the value, or nothing if the limit is not set. `set` creates the cache if it is
        missing. It refuses a maximum of 0, and a min-free of the whole file system or more, because these
        allow no values. --force sets such a max-age, max-idle, max-value-size or min-free anyway. `unset` removes a
        limit.

        JSON, and config.json: maximumSize, maximumEntries, minimumFree (bytes, or "10%"), maximumAge and
        maximumIdleTime (seconds), maximumValueSize, eventLog, assumeLocal, shareMemory; limits that are not
        set are omitted. remote: servers (each with url, weight, kind, region), or levels, a list of such
        lists; mode, limit, namespace, path, format, minimumSize, maximumSize, tags, credentials.

        Exit status: 0 done; 1 get: the limit is not set; 64 usage; 73 not a directory, or a read-only file
        system; 75 another process is changing the limits; 77 permission; 78 not a cache, or config.json is
        damaged.

        Examples:
          diskcache config set max-size 2G
          diskcache config get max-size
          diskcache config unset max-idle
          diskcache config set remote.servers http://cache-1:8080/,http://cache-2:8080/
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        guard let verb = arguments.operands.first else {
            try show(arguments)
            return .done
        }
        guard let form = ["get": "get NAME", "set": "set NAME VALUE", "unset": "unset NAME"][verb] else {
            throw Failure.usage(
                "config: unknown action '\(verb)': give get, set or unset, or nothing to show all"
            )
        }
        let count = form.split(separator: " ").count
        try arguments.expectOperands(count...count, form)
        if arguments.operands[1].hasPrefix("remote.") { return try RemoteSetting.run(verb, arguments) }
        let setting = try setting(arguments)
        switch verb {
        case "get": return try get(setting, arguments)
        case "set": return try set(setting, arguments)
        default: return try change(try arguments.requireCache(), setting, to: CacheLimits(), arguments)
        }
    }

    private static func show(_ arguments: Arguments) throws {
        let directory = try arguments.requireCache().directory
        let limits = try directory.limits()
        var table = Table(.left, .left)
        for setting in Setting.all { table.add(setting.name, setting.texts(limits)?.shown ?? "-") }
        guard let remote = try directory.remoteConfiguration() else {
            return try arguments.print(table.text, json: limits)
        }
        for setting in RemoteSetting.all {
            if let texts = setting.texts(remote) { table.add(setting.name, texts.shown) }
        }
        try arguments.print(
            table.text,
            json: JSON.Object(limits, ["remote": remote] as JSON.Object)
        )
    }

    private static func set(_ setting: Setting, _ arguments: Arguments) throws -> ExitStatus {
        let text = arguments.operands[2]
        // Parsed first, so that no cache is created for an invalid value.
        let limits = try setting.parse(text)
        let isForced = arguments.has("force")
        if !isForced, limits.keepNothing { throw refusal(setting, text) }
        let cache = try arguments.openCache()
        if !isForced, case .bytes(let floor)? = limits.minimumFree {
            let space = try doing("get the size of the file system of \(cache.path)") { () throws(Errno) in
                try Directory(opening: cache.path).descriptor.fileSystemSpace()
            }
            if floor.bytes >= space.totalBytes { throw refusal(setting, text) }
        }
        return try change(cache, setting, to: limits, arguments)
    }

    private static func refusal(_ setting: Setting, _ text: String) -> Failure {
        // The library rejects a size or a number of keys that allows no values, even with --force.
        let way = ["max-size", "max-entries"].contains(setting.name) ? "" : ", or give --force"
        return .usage(
            """
            config: \(setting.name): \(text) allows no values: to remove the limit, use \
            `diskcache config unset \(setting.name)`; to empty the cache, `diskcache clear`\(way)
            """
        )
    }

    private static func setting(_ arguments: Arguments) throws(Failure) -> Setting {
        let name = arguments.operands[1]
        if let setting = Setting.all.first(where: { $0.name == name }) { return setting }
        let names = Setting.all.map(\.name).joined(separator: ", ")
        throw .usage(
            """
            config: unknown setting '\(name)': give one of \(names), or remote.NAME for remote stores (see \
            `diskcache config --help`)
            """
        )
    }

    private static func get(_ setting: Setting, _ arguments: Arguments) throws -> ExitStatus {
        let limits = try arguments.requireCache().directory.limits()
        let texts = setting.texts(limits)
        var only = CacheLimits()
        if texts != nil { setting.copy(limits, &only) }
        try arguments.print(texts.map { $0.exact + "\n" } ?? "", json: only)
        return texts == nil ? .miss : .done
    }

    private static func change(
        _ cache: SharedCache,
        _ setting: Setting,
        to other: CacheLimits,
        _ arguments: Arguments
    ) throws -> ExitStatus {
        let limits = try cache.directory.updateLimits { (limits) throws(CacheError) in
            setting.copy(other, &limits)
        }
        try arguments.print("", json: limits)
        return .done
    }
}

/// One limit of the cache, with its name in `config`.
struct Setting {
    let name: String
    /// Parses a text, and sets the limit to its value.
    private let assign: (String, inout CacheLimits) throws(Failure) -> Void
    /// Copies the limit from the first argument to the second one.
    let copy: (CacheLimits, inout CacheLimits) -> Void
    /// Returns the value as shown to users, and in the exact form that `set` accepts; nil if the limit isn't set.
    let texts: (CacheLimits) -> (shown: String, exact: String)?

    /// Creates a setting.
    ///
    /// - Parameter unset: The value that means no limit, if nil would leave the limit unchanged.
    private init<Value>(
        _ name: String,
        _ path: WritableKeyPath<CacheLimits, Value?>,
        unset: Value? = nil,
        _ parse: @escaping (String) throws(Failure) -> Value,
        _ texts: @escaping (Value) -> (shown: String, exact: String)
    ) {
        self.name = name
        assign = { (text, limits) throws(Failure) in limits[keyPath: path] = try parse(text) }
        copy = { other, limits in limits[keyPath: path] = other[keyPath: path] ?? unset }
        self.texts = { limits in limits[keyPath: path].map(texts) }
    }

    /// All settings, in the order of output.
    static var all: [Setting] {
        [
            Setting("max-size", \.maximumSize, Quantity.size, size),
            Setting("max-entries", \.maximumEntries, Quantity.count) { (Quantity.grouped($0), "\($0)") },
            Setting("min-free", \.minimumFree, Quantity.freeSpace, space),
            Setting("max-age", \.maximumAge, Quantity.duration, span),
            Setting("max-idle", \.maximumIdleTime, Quantity.duration, span),
            Setting("max-value-size", \.maximumValueSize, Quantity.size, size),
            Setting("event-log", \.eventLogSize, Quantity.size, size),
            Setting("assume-local", \.assumesLocal, unset: false, answer) { ("\($0)", "\($0)") },
            Setting("share-memory", \.sharesMemory, unset: true, answer) { ("\($0)", "\($0)") },
        ]
    }

    private static func size(_ count: ByteCount) -> (shown: String, exact: String) {
        (Quantity.text(bytes: count.bytes), "\(count.bytes)")
    }

    private static func span(_ span: Duration) -> (shown: String, exact: String) {
        let seconds = span.inSeconds
        return (Quantity.text(span), Int(exactly: seconds).map { "\($0)s" } ?? "\(seconds)s")
    }

    private static func space(_ space: CacheLimits.FreeSpace) -> (shown: String, exact: String) {
        if case .bytes(let count) = space { return size(count) }
        return (Quantity.text(space), Quantity.text(space))
    }

    private static func answer(_ text: String) throws(Failure) -> Bool {
        if let answer = ["true": true, "false": false][text] { return answer }
        throw .usage("invalid value '\(text)': give true or false")
    }

    /// Returns limits of which only this one is set.
    func parse(_ text: String) throws(Failure) -> CacheLimits {
        var limits = CacheLimits()
        do throws(Failure) {
            try assign(text, &limits)
        } catch {
            throw .usage("config: \(name): \(error.message)")
        }
        // A size of 0 means no log.
        if limits.eventLogSize?.bytes == 0 { limits.eventLogSize = nil }
        return limits
    }
}

extension CacheLimits {
    /// Whether a limit is so low that no value can be stored.
    fileprivate var keepNothing: Bool {
        if case .percent(let share) = minimumFree, share >= 100 { return true }
        return maximumSize?.bytes == 0 || maximumEntries == 0 || maximumValueSize?.bytes == 0
            || [maximumAge, maximumIdleTime].contains { $0.map { $0 < .milliseconds(1) } ?? false }
    }
}
