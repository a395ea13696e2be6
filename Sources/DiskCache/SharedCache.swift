// SPDX-License-Identifier: Apache-2.0

@_exported public import CacheStore
import FoundationEssentials
package import Platform

/// A cache in a directory that any number of processes on one machine use at the same time.
///
/// Every get returns exactly the bytes of one completed put for that key, or nil, whatever the other processes do and
/// whenever any of them is killed. There is no server process, and no cleanup after a crash. Do **not** use it on network
/// file systems, whose locks and renames guarantee less.
///
/// ```swift
/// let cache = try SharedCache(at: "/var/cache/thumbs")
/// try cache.put(data, forKey: "user:1/thumb", options: PutOptions(expires: .days(7)))
/// if let hit = try cache.get(forKey: "user:1/thumb") { use(hit.value) }
/// ```
///
/// Any non-empty string is a key. Keys are equal if their UTF-8 bytes are equal; no normalization is applied. The most
/// common calls come in two forms: a synchronous one that works on the calling thread, and an `async` one that works on
/// library threads. In asynchronous code the compiler chooses the latter. Make calls that have no `async` form through
/// ``KeyedCache/blocking(_:)`` there.
public final class SharedCache: Sendable {
    /// The absolute path of the directory.
    package let path: String
    /// The configuration that the cache was opened with.
    public let configuration: CacheConfiguration
    let core: CacheCore
    let writeBehind: WriteBehind
    /// The computations in progress in this process.
    let flights: Flights
    let presence: CacheRegistration
    /// The remote tier; nil if no remote servers are used, and for downloads.
    let remote: RemoteLookup?
    /// The key space of the calls through this instance.
    let space: KeySpace

    /// Opens the cache at `path`.
    ///
    /// The directory is created, accessible to its owner only, if it does not exist. A relative `path` is resolved against
    /// the present working directory; the cache stays there when the process changes its working directory. Takes about
    /// thirty system calls, and about fifteen more to start the janitor's thread, regardless of the directory's size. A new
    /// directory also gets its 131 lock files.
    ///
    /// - Throws: ``CacheError`` with the code `notACache` for a directory that holds other files,
    ///   `newerFormat`, `notADirectory`, `untrusted`, `permissionDenied`, `readOnly`, `noSpace` or
    ///   `inputOutput`.
    public convenience init(
        at path: String,
        configuration: CacheConfiguration = CacheConfiguration()
    ) throws(CacheError) {
        try self.init(at: path, configuration: configuration) { _ throws(CacheError) in nil }
    }

    /// Opens the cache at `path` on a library thread; otherwise like ``init(at:configuration:)``.
    public static func open(
        at path: String,
        configuration: CacheConfiguration = CacheConfiguration()
    ) async throws(CacheError) -> SharedCache {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try SharedCache(at: path, configuration: configuration)
        }
    }

    /// Opens the cache with the remote tier that `tier` creates, if any.
    package init(
        at path: String,
        configuration: CacheConfiguration,
        tier: (RemoteContext) throws(CacheError) -> (any RemoteTier)?
    ) throws(CacheError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw CacheError(.invalidArgument, "open \"\(path)\": it is not a path: name a directory")
        }
        let path = try describing("find the working directory for", path) { () throws(Errno) in
            try CurrentProcess.absolutePath(path)
        }
        self.path = path
        self.configuration = configuration
        space = .callers
        flights = Flights()
        let core = try CacheCore(path: path, configuration: configuration)
        self.core = core
        let host = RemoteContext(
            store: { core.store },
            now: { core.now },
            report: { core.events.send($0) }
        )
        let remote = try tier(host).map { RemoteLookup($0, core) }
        self.remote = remote
        let writeBehind = WriteBehind(limits: configuration.writeBehind) { [core] in core.publish($0) }
        self.writeBehind = writeBehind
        presence = CacheRegistration(core, writeBehind, remote)
        try establishLimits()
    }

    /// Creates an instance of the same open cache for another key space.
    private init(_ cache: SharedCache, _ space: KeySpace) {
        path = cache.path
        configuration = cache.configuration
        core = cache.core
        writeBehind = cache.writeBehind
        flights = cache.flights
        presence = cache.presence
        remote = nil
        self.space = space
    }

    /// This cache for downloads: the same directory, memory and limits, but separate entries, flights and locks.
    ///
    /// No caller's key names any of these entries. Other machines never see their keys or values.
    package var downloads: SharedCache { SharedCache(self, .downloads) }

    /// A new stream of the cache's events from now on: actions and failures that no call reports.
    ///
    /// If the directory's limits differ from those of the configuration, the first stream begins with
    /// ``CacheEvent/limitsDiffer(given:present:)``. Each access of this property creates a stream, which buffers the latest
    /// 1,024 events. All streams end when the cache is closed, and streams created later end at once. Without listeners,
    /// events cost almost nothing.
    public var events: AsyncStream<CacheEvent> { core.events.makeStream() }

    // MARK: For the extensions

    /// Runs `body` on the store; if it fails because the directory was deleted, throws an error that says so.
    package func withStore<Value: ~Copyable>(
        _ body: (Store, Timestamp) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try core.withStore(body)
    }

    /// The counters since this cache was opened.
    var counters: StoreCounters { core.store.counters }

    /// The current time by the clock that decides when values expire.
    var now: Timestamp { core.now }

    /// Returns the digest that names a key's entry; throws for an empty key.
    func digest(ofKey key: String) throws(CacheError) -> Digest {
        guard !key.isEmpty else {
            throw CacheError(.invalidArgument, "the key is empty: give one of at least one byte")
        }
        return name(ofKey: key)
    }

    /// Returns the digest of a key that is known to be valid.
    func name(ofKey key: String) -> Digest { Digest(ofKey: key, in: space) }

    /// Removes the value of `key` from memory.
    func forget(_ key: String, _ cause: MemoryRemovalCause) {
        core.memory?.remove(key, in: space, cause: cause)
    }

    /// Returns the digest of a key once all earlier puts of it by this process are published.
    func settledDigest(ofKey key: String) throws(CacheError) -> Digest {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        writeBehind.settle(digest)
        return digest
    }

    /// Waits until all earlier puts by this process are published.
    func publishAll() throws(CacheError) {
        // A forked child has no thread that publishes the queue.
        try core.checkOpen()
        _ = writeBehind.flush()
    }

    /// Creates the record of a value that is stored at `now`.
    func record(
        of content: Content,
        key: String?,
        _ options: PutOptions,
        now: Timestamp
    ) throws(CacheError) -> Record {
        var record = Record(content: content, created: now)
        try apply(options.expires, options.onAccess, staleFor: options.staleFor, to: &record, now: now)
        if configuration.keyNames == .stored, let key, key.utf8.count <= Record.longestKey {
            record.key = key
        }
        options.describe(&record)
        if space != .callers { record.details.staysHere = true }
        return record
    }

    func apply(
        _ expires: Expiration?,
        _ onAccess: Expiration.OnAccess?,
        staleFor: Duration?,
        to record: inout Record,
        now: Timestamp
    ) throws(CacheError) {
        let end = try (expires ?? configuration.defaultExpiration).moment(from: now)
        record.expires = end
        // Computed from the exact end: a rounded one would make the idle lifetime differ from the value's lifetime.
        record.idleLifetime = try (onAccess ?? configuration.defaultOnAccess)
            .idleLifetime(expires: end, from: now)
        if let staleFor { try Self.checkStalePeriod(staleFor) }
        record.staleFor = staleFor
    }

    static func checkStalePeriod(_ period: Duration) throws(CacheError) {
        if period >= .zero { return }
        throw CacheError(.invalidArgument, "stale for \(period): it can't be negative: use 0 or more")
    }
}
