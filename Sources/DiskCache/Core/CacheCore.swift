// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Synchronization

/// What a ``SharedCache`` consists of.
///
/// It lives as long as anything needs it. Background threads hold this and never the cache itself, so that
/// letting go of a cache never waits for them.
final class CacheCore: Sendable {
    let path: String
    let configuration: CacheConfiguration
    let events: EventStreams
    let memory: MemoryTier?
    /// ``memory``, for hits.
    let tier: UncountedReference<MemoryTier>?
    private let openStore: Locked<Store>
    private let isClosed = Atomic<Bool>(false)
    private let owner = processGeneration

    init(path: String, configuration: CacheConfiguration) throws(CacheError) {
        self.path = path
        self.configuration = configuration
        let store = try Store(at: path, options: configuration.storeOptions)
        openStore = Locked(store)
        let events = EventStreams(callback: configuration.onEvent)
        self.events = events
        if configuration.memory.isEnabled {
            let carriesValues = configuration.memory.eventsCarryValues
            memory = MemoryTier(limits: configuration.memory.limits) { item, cause in
                let value = carriesValues ? item.anyValue : nil
                events.send(.removedFromMemory(key: item.key, cause: cause, cost: item.cost, value: value))
            }
        } else {
            memory = nil
        }
        // Kept alive by this object, in which it never changes.
        tier = memory.map { unsafe UncountedReference($0) }
        memory?.setStore(store)
    }

    // MARK: Use

    /// The directory's files; another object after the directory was replaced.
    var store: Store { openStore.withLock { $0 } }

    /// The moment by which this cache judges expirations.
    var now: Timestamp {
        configuration.now.map { Timestamp($0()) } ?? .now
    }

    func close() -> Bool {
        !isClosed.exchange(true, ordering: .sequentiallyConsistent)
    }

    /// Whether this process is the one that has opened this, and not a child of it.
    @inline(__always)
    var isOwn: Bool { processGeneration == owner }

    /// Throws after ``close()``, and in a child of the process that has opened this.
    ///
    /// In a child, locks are shared with the parent, and mutexes may be held by threads that don't exist.
    @inline(__always)
    func checkOpen() throws(CacheError) {
        if isClosed.load(ordering: .relaxed) || !isOwn { throw closedError }
    }

    @inline(never)
    private var closedError: CacheError {
        isOwn
            ? CacheError(.closed, "use \(path): the cache was closed: open it again", path: path)
            : CacheError(.forked, to: "use", path: path)
    }

    /// Runs `body` on the store; its errors say if the directory is gone.
    ///
    /// Inlined, as a get takes 100 instructions more otherwise.
    @inline(__always)
    func withStore<Value: ~Copyable>(
        _ body: (Store, Timestamp) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try checkOpen()
        return try describingFailures { (store) throws(CacheError) in try body(store, now) }
    }

    /// The same, even during and after closing, for what is left to be done then.
    @inline(__always)
    func describingFailures<Value: ~Copyable>(
        _ body: (Store) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        let store = store
        do throws(CacheError) {
            return try body(store)
        } catch {
            guard error.cause == .noEntry, Self.isGone(store) else { throw error }
            throw CacheError(.directoryVanished, to: "use", path: path, cause: .noEntry)
        }
    }

    /// False also where that can't be told: then the error is told as it is.
    ///
    /// Kept out of the way of every get: inlined, it costs each of them 80 instructions.
    @inline(never)
    private static func isGone(_ store: Store) -> Bool {
        (try? store.directory.isCurrent()) == false
    }

    /// Continues in the directory that the path leads to now, creating it if there is none.
    func reopen() throws(CacheError) {
        let store = try Store(at: path, options: configuration.storeOptions, replacing: store)
        // The memory tier first: what it has from the old directory is then judged by the store that puts go to,
        // whichever that is. The old one is let go of last, and under no lock.
        memory?.setStore(store)
        let old = openStore.withLock { present in
            defer { present = store }
            return present
        }
        memory?.removeAll(cause: .invalidated)
        withExtendedLifetime(old) {}
        events.send(.directoryReplaced)
    }

    /// What this process did since the cache was opened: nothing, in a child of the one that has opened it.
    var activity: CacheActivity {
        // There the locks may be held by threads that don't exist.
        guard isOwn else { return CacheActivity() }
        let (counters, hits) = (store.counters, memory?.hits ?? 0)
        // Hits in the memory tier are counted there.
        return CacheActivity { counters[$0] + ($0 == .memoryHit ? hits : 0) }
    }

    // MARK: Accesses

    /// Remembers that a value in memory was used, to record it on disk later.
    func noteAccess(_ key: Digest, at now: Timestamp) {
        guard let memory else { return }
        memory.dueAccesses.withLock { $0.add(key, at: now) }
    }

    /// Records on disk what was used in memory.
    ///
    /// Two system calls for each key, at most ``DueAccesses/capacity`` keys.
    func flushAccesses() {
        guard let memory else { return }
        let store = store
        let now = now
        for (key, time) in memory.dueAccesses.withLock({ $0.take() }) {
            store.accesses.note(key, at: time, now: now)
        }
    }
}
