// SPDX-License-Identifier: Apache-2.0

@_exported public import CacheStore
import FoundationEssentials
package import Platform

/// A cache in a directory that any number of processes on one machine use at the same time.
///
/// Every get returns exactly the bytes of one completed put for that key, or nothing, whatever the other
/// processes do and whenever any of them is killed. There is no server, and nothing to clean up after a crash.
/// **Not** for network file systems, whose locks and renames promise less.
///
/// ```swift
/// let cache = try SharedCache(at: "/var/cache/thumbs")
/// try cache.put(data, forKey: "user:1/thumb", options: PutOptions(expires: .days(7)))
/// if let hit = try cache.get(forKey: "user:1/thumb") { use(hit.value) }
/// ```
///
/// Any string but the empty one is a key. Two keys are the same if their UTF-8 bytes are: no normalization is
/// applied. The calls used most come in two forms: one works on the calling thread, the other is `async` and
/// works on threads of the library. In asynchronous code the compiler chooses the latter; make all other calls
/// through ``blocking(_:)``.
public final class SharedCache: Sendable {
    /// The absolute path of the directory.
    package let path: String
    /// How this process uses it.
    public let configuration: CacheConfiguration
    let core: CacheCore
    let writeBehind: WriteBehind
    /// The computations that are under way in this process.
    let flights: Flights
    let presence: Presence
    /// What other machines have; nil: nobody is asked.
    let remote: RemoteLine?
    /// Whose keys its calls take.
    let space: KeySpace

    /// Opens the cache at `path`, and creates the directory, accessible to its owner only, if it doesn't exist.
    ///
    /// A relative `path` is one below the present working directory. The cache stays there when the process changes its
    /// working directory. Takes about twenty system calls, and as many again to start the janitor's thread, however much the
    /// directory holds. A new directory also gets its 131 lock files.
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

    /// The same with what `tier` makes of the open cache below its disk.
    package init(
        at path: String,
        configuration: CacheConfiguration,
        tier: (RemoteHost) throws(CacheError) -> (any RemoteTier)?
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
        let host = RemoteHost(
            store: { core.store },
            now: { core.now },
            report: { core.events.send($0) }
        )
        let remote = try tier(host).map { RemoteLine($0, core) }
        self.remote = remote
        let writeBehind = WriteBehind(limits: configuration.writeBehind) { [core] in core.publish($0) }
        self.writeBehind = writeBehind
        presence = Presence(core, writeBehind, remote)
        try establishLimits()
    }

    /// The same open cache with the keys of another space.
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

    /// This cache for what is downloaded: the same directory, memory and limits, and other entries, flights and locks,
    /// which no caller's key names.
    ///
    /// Other machines never see its keys or values.
    package var downloads: SharedCache { SharedCache(self, .downloads) }

    /// What happens in this cache from now on that no call reports.
    ///
    /// The first stream also tells if the directory has other limits than those that were given
    /// (``CacheEvent/limitsDiffer(given:present:)``). Each use of this property makes a stream of its own,
    /// which keeps the latest 1,024 events for its reader. All streams end when the cache is closed, and one
    /// that is made afterwards ends at once. Events cost nothing while nobody listens.
    public var events: AsyncStream<CacheEvent> { core.events.makeStream() }

    // MARK: For the extensions

    /// Runs `body` on the store; its errors say if the directory is gone.
    package func withStore<Value: ~Copyable>(
        _ body: (Store, Timestamp) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try core.withStore(body)
    }

    /// What was counted since this cache was opened.
    var counters: StoreCounters { core.store.counters }

    /// The moment by which this cache judges expirations.
    var now: Timestamp { core.now }

    /// The name of a key's entry.
    func digest(ofKey key: String) throws(CacheError) -> Digest {
        guard !key.isEmpty else {
            throw CacheError(.invalidArgument, "use an empty key: a key must not be empty: give one")
        }
        return name(ofKey: key)
    }

    /// The same for a key that was checked before.
    func name(ofKey key: String) -> Digest { Digest(ofKey: key, in: space) }

    /// Removes the value of `key` from memory.
    func forget(_ key: String, _ cause: CacheEvent.RemovalCause) {
        core.memory?.remove(key, in: space, cause: cause)
    }

    /// The name of a key's entry, once all earlier puts of it by this process are published.
    func settledDigest(ofKey key: String) throws(CacheError) -> Digest {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        writeBehind.settle(digest)
        return digest
    }

    /// Waits until all earlier puts by this process are published.
    func publishAll() throws(CacheError) {
        // In a child that was forked nobody publishes what waits.
        try core.checkOpen()
        _ = writeBehind.flush()
    }

    /// The record of a value that is stored at `now`.
    func record(
        of content: Content,
        key: String?,
        _ options: PutOptions,
        now: Timestamp
    ) throws(CacheError) -> Record {
        var record = Record(content: content, created: now)
        try apply(options.expires, options.onAccess, staleFor: options.staleFor, to: &record, now: now)
        if configuration.keyNames == .stored, let key, key.utf8.count <= RecordCodec.longestKey {
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
        // Of the moment as it was asked for: rounded, it would make the lifetime another than that of the value.
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
