// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import Platform

/// How much a cache directory may hold, and for how long.
///
/// Limits belong to the directory: they are in its `config.json`, and all processes that use it follow a change
/// within a second. nil means that there is no such limit.
///
/// At 95 % of a limit the janitor of one of the processes evicts the least recently used values until 90 % are
/// left. A put that would exceed 100 % makes room itself, or waits up to a minute while another process does.
/// So a limit holds at every moment, give or take what the file system needs for growing directories.
public struct CacheLimits: Sendable, Equatable, Codable {
    /// Bytes on disk, as `du` counts them: values, keys, directories and the cache's own files, which take 3 to
    /// 5 MiB in an empty cache.
    public var maximumSize: ByteCount?
    /// The number of keys.
    public var maximumEntries: Int?
    /// What must stay available on the file system, whoever uses it up.
    public var minimumFree: FreeSpace?
    /// How long ago a value may have been stored before it is removed.
    ///
    /// It may still be returned until a collection removes it, a minute at most. For exact ends use
    /// expirations.
    public var maximumAge: Duration?
    /// How long ago a value may have been used last before it is removed.
    public var maximumIdleTime: Duration?
    /// Bytes of the longest value that is accepted.
    public var maximumValueSize: ByteCount?
    /// Bytes that the log of removals may take; nil for no log.
    public var eventLogSize: ByteCount?
    /// Whether the directory is on a local file system even though it does not look so; nil leaves it as it
    /// was.
    ///
    /// For unknown file systems and FUSE, which are otherwise taken for network file systems. It takes effect
    /// in processes that open the cache afterwards, so end all that have it open. If other machines write to
    /// the file system, processes may return old values.
    public var assumesLocal: Bool?

    /// No limits, or a size alone.
    public init(maximumSize: ByteCount? = nil) {
        self.maximumSize = maximumSize
    }

    package init(_ configuration: DirectoryConfiguration) {
        maximumSize = configuration.limits.maximumSize.map { ByteCount($0) }
        maximumEntries = configuration.limits.maximumEntries
        minimumFree = configuration.limits.minimumFree.map { FreeSpace($0) }
        maximumAge = configuration.limits.maximumAge
        maximumIdleTime = configuration.limits.maximumIdleTime
        maximumValueSize = configuration.maximumValueSize.map { ByteCount($0) }
        eventLogSize = configuration.eventLogSize.map { ByteCount($0) }
        assumesLocal = configuration.assumesLocal ? true : nil
    }

    // MARK: JSON

    /// As in `config.json`.
    private enum Key: String, CodingKey {
        case maximumSize, maximumEntries, minimumFree, maximumAge, maximumIdleTime, maximumValueSize, eventLog
        case assumeLocal
    }

    /// Reads what ``encode(to:)`` writes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func seconds(_ key: Key) throws -> Duration? {
            try container.decodeIfPresent(Double.self, forKey: key).map { .seconds($0) }
        }
        maximumSize = try container.decodeIfPresent(ByteCount.self, forKey: .maximumSize)
        maximumEntries = try container.decodeIfPresent(Int.self, forKey: .maximumEntries)
        minimumFree = try container.decodeIfPresent(FreeSpace.self, forKey: .minimumFree)
        maximumAge = try seconds(.maximumAge)
        maximumIdleTime = try seconds(.maximumIdleTime)
        maximumValueSize = try container.decodeIfPresent(ByteCount.self, forKey: .maximumValueSize)
        eventLogSize = try container.decodeIfPresent(ByteCount.self, forKey: .eventLog)
        assumesLocal = try container.decodeIfPresent(Bool.self, forKey: .assumeLocal)
    }

    /// Writes the keys of `config.json`, spans in seconds; what is not limited is left out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(maximumSize, forKey: .maximumSize)
        try container.encodeIfPresent(maximumEntries, forKey: .maximumEntries)
        try container.encodeIfPresent(minimumFree, forKey: .minimumFree)
        try container.encodeIfPresent(maximumAge.map { $0 / .seconds(1) }, forKey: .maximumAge)
        try container.encodeIfPresent(maximumIdleTime.map { $0 / .seconds(1) }, forKey: .maximumIdleTime)
        try container.encodeIfPresent(maximumValueSize, forKey: .maximumValueSize)
        try container.encodeIfPresent(eventLogSize, forKey: .eventLog)
        try container.encodeIfPresent(assumesLocal, forKey: .assumeLocal)
    }

    func apply(to configuration: inout DirectoryConfiguration) {
        configuration.limits.maximumSize = maximumSize?.bytes
        configuration.limits.maximumEntries = maximumEntries
        configuration.limits.minimumFree = minimumFree?.floor
        configuration.limits.maximumAge = maximumAge
        configuration.limits.maximumIdleTime = maximumIdleTime
        configuration.maximumValueSize = maximumValueSize?.bytes
        configuration.eventLogSize = eventLogSize?.bytes
        if let assumesLocal { configuration.assumesLocal = assumesLocal }
    }

    /// Refuses limits that no directory can satisfy, unless they were there before: changing one limit should
    /// not fail because of another.
    func check(against before: CacheLimits = CacheLimits()) throws(CacheError) {
        if maximumEntries != before.maximumEntries, maximumEntries ?? 1 < 1 {
            throw CacheError(.invalidArgument, "limit the keys: there must be room for one: use 1 or more")
        }
        for (name, span) in [("age", maximumAge), ("idle time", maximumIdleTime)] where span ?? .zero < .zero
        {
            throw CacheError(.invalidArgument, "limit the \(name): it can't be negative: use 0 or more")
        }
        // All else would be a `config.json` that nobody could read.
        var configuration = DirectoryConfiguration()
        apply(to: &configuration)
        if let problem = configuration.problem {
            throw CacheError(.invalidArgument, "change the limits: \(problem): use another value")
        }
    }
}

extension SharedCache {
    /// The directory's present limits.
    ///
    /// One system call if it has none, otherwise four.
    ///
    /// - Throws: ``CacheError`` with the code `badConfiguration` if `config.json` can't be understood.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func limits() throws(CacheError) -> CacheLimits {
        try withStore { (store, _) throws(CacheError) in
            store.followConfiguration()
            if let failure = store.configurationFailure { throw failure }
            return CacheLimits(store.configuration)
        }
    }

    /// Changes the directory's limits, for all processes.
    ///
    /// They follow within a second. What exceeds the new limits is evicted by a process that has a janitor, or
    /// by the next collection.
    ///
    /// - Parameter change: changes the present limits in place.
    /// - Returns: the new limits.
    /// - Throws: ``CacheError``, with the code `invalidArgument` for a size that even an empty cache exceeds,
    ///   and what `change` throws. The limits then stay as they were.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func updateLimits(
        _ change: (inout CacheLimits) throws(CacheError) -> Void
    ) throws(CacheError) -> CacheLimits {
        var result = CacheLimits()
        var refusal: CacheError?
        try withStore { (store, _) throws(CacheError) in
            try store.configure { (configuration) throws(CacheError) in
                let before = CacheLimits(configuration)
                var limits = before
                do throws(CacheError) {
                    try change(&limits)
                    try limits.check(against: before)
                    try limits.checkRoom(beside: store.overhead, path, against: before)
                } catch {
                    refusal = error
                    return
                }
                limits.apply(to: &configuration)
                result = limits
            }
        }
        if let refusal { throw refusal }
        return result
    }
}

extension SharedCache {
    /// Writes the limits of this cache's configuration if the directory has none of its own, and reports it if
    /// the directory has others.
    func establishLimits() throws(CacheError) {
        guard let limits = configuration.limits, core.store.configurationFailure == nil else { return }
        // That the file system is local is no limit.
        var present = core.store.configuration
        present.assumesLocal = false
        if core.store.directory.isWritable, present == DirectoryConfiguration() {
            // Another process may have been first.
            try updateLimits { present in
                var others = present
                others.assumesLocal = nil
                if others == CacheLimits() { present = limits }
            }
        }
        var given = DirectoryConfiguration()
        limits.apply(to: &given)
        present = core.store.configuration
        if !present.includes(given) {
            core.events.sendEarly(.limitsDiffer(given: limits, present: CacheLimits(present)))
        }
    }
}

extension CacheLimits {
    /// Refuses a size that the directories and the cache's own files take by themselves.
    fileprivate func checkRoom(
        beside overhead: Int64,
        _ path: String,
        against before: CacheLimits
    ) throws(CacheError) {
        let overhead = overhead + (eventLogSize?.bytes ?? 0)
        guard let maximumSize, maximumSize.bytes <= overhead else { return }
        if maximumSize == before.maximumSize, eventLogSize == before.eventLogSize { return }
        throw CacheError(
            .invalidArgument,
            """
            limit \(path) to \(maximumSize.bytes) bytes: its directories, log and own files take up to \(overhead): \
            use more than that
            """,
            path: path
        )
    }
}
