// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import FoundationEssentials
package import Platform

/// A cache in a directory that any number of processes on one machine use at the same time.
///
/// Safe: every get returns exactly the bytes of one completed put for that key, or nothing, whatever the
/// other processes do and whenever any of them is killed. There is no server and nothing to clean up
/// after a crash. **Not** safe on network file systems, whose locks and renames promise less.
///
/// ```swift
/// let cache = try SharedCache(at: "/var/cache/thumbs")
/// try cache.put(data, forKey: "user:1/thumb", options: PutOptions(expires: .days(7)))
/// if let hit = try cache.get(forKey: "user:1/thumb") { use(hit.value) }
/// ```
///
/// Keys are strings that differ if their UTF-8 bytes do: no normalization is applied. They can be
/// anything but empty. What is used most comes in two forms, one that does its work on the calling thread and one
/// that is `async` and does it on threads of the library; in asynchronous code the compiler takes the latter, and
/// everything else is called by ``blocking(_:)``.
public final class SharedCache: Sendable {
    /// The directory, as it was given.
    public let path: String
    /// How this process uses it.
    public let configuration: CacheConfiguration
    let core: CacheCore
    let writeBehind: WriteBehind
    /// The computations that are under way in this process.
    let flights: Flights
    let presence: Presence

    /// Opens the cache at `path`, creating the directory (for its owner only) where there is none.
    ///
    /// About twenty system calls, and as many more for the janitor's thread; the contents are not looked at. A
    /// new directory also gets its lock files, 131 of them.
    ///
    /// - Throws: ``CacheError`` with the code `notACache` for a directory that holds other files,
    ///   `newerFormat`, `notADirectory`, `untrusted`, `permissionDenied`, `readOnly`, `noSpace` or `inputOutput`.
    public init(at path: String, configuration: CacheConfiguration = CacheConfiguration()) throws(CacheError)
    {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw CacheError(.invalidArgument, "open \"\(path)\": it is no path: name a directory")
        }
        self.path = path
        self.configuration = configuration
        do throws(StoreError) {
            core = try CacheCore(path: path, configuration: configuration)
        } catch {
            throw CacheError(error)
        }
        flights = Flights { [core] in core.store.counters }
        let writeBehind = WriteBehind(limits: configuration.pendingWrites) { [core] in core.publish($0) }
        self.writeBehind = writeBehind
        presence = Presence(configuration.janitor, duties: core.duties(writeBehind))
        try establishLimits()
    }

    /// What happens in this cache from now on that nobody is told by a call's result.
    ///
    /// The first one also tells if limits were given that the directory doesn't have
    /// (``CacheEvent/limitsDiffer(given:present:)``). Each use is a stream of its own, which keeps the latest 1,024 events for its reader. All end when the cache
    /// is closed, and one that is asked for afterwards ends at once. None costs anything while nobody listens.
    public var events: AsyncStream<CacheEvent> { core.events.makeStream() }

    // MARK: For the extensions

    /// Runs `body` on the store and says of its failures what the user can do.
    package func withStore<Value: ~Copyable>(
        _ body: (Store, Timestamp) throws(StoreError) -> Value
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
            throw CacheError(.invalidArgument, "use an empty key: it names nothing: give a key")
        }
        return Digest(ofKey: key)
    }

    /// The name of a key's entry, on disk as this process has put it: what waits to be published is, first.
    func settledDigest(ofKey key: String) throws(CacheError) -> Digest {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        writeBehind.settle(digest)
        return digest
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
        record.cost = options.computeTime
        if configuration.keyNames == .stored, let key, key.utf8.count <= RecordCodec.longestKey {
            record.key = key
        }
        if let details = options.details { record.details = details }
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
        if let staleFor, staleFor < .zero {
            throw CacheError(.invalidArgument, "stale for \(staleFor): it can't be negative: use 0 or more")
        }
        record.staleFor = staleFor
    }
}
