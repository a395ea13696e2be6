// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Synchronization

/// The state behind a ``SharedCache``.
///
/// Background threads hold this object, and never the cache itself, so that releasing a cache never waits for them.
final class CacheCore: Sendable {
    let path: String
    let configuration: CacheConfiguration
    let events: EventStreams
    let memory: MemoryTier?
    /// ``memory`` without reference counting, for hits.
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
        // This object keeps the tier alive and never replaces it.
        tier = memory.map { unsafe UncountedReference($0) }
        memory?.setStore(store)
    }

    // MARK: Use

    /// The directory's store; a different object after the directory was replaced.
    var store: Store { openStore.withLock { $0 } }

    /// The current time, by which values of this cache expire.
    var now: Timestamp {
        configuration.now.map { Timestamp($0()) } ?? .now
    }

    func close() -> Bool {
        !isClosed.exchange(true, ordering: .sequentiallyConsistent)
    }

    /// Whether this process opened the cache; false in a forked child.
    @inline(__always)
    var isOwn: Bool { processGeneration == owner }

    /// Throws after ``close()``, and in a forked child of the process that opened the cache.
    ///
    /// A child shares file locks with its parent, and its mutexes may be held by threads that exist only in the parent.
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

    /// Runs `body` on the store.
    ///
    /// - Throws: ``CacheError/Code/directoryVanished`` if `body` fails because the directory is gone.
    ///
    /// Inlined, because a get would otherwise take 100 more instructions.
    @inline(__always)
    func withStore<Value: ~Copyable>(
        _ body: (Store, Timestamp) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try checkOpen()
        return try describingFailures { (store) throws(CacheError) in try body(store, now) }
    }

    /// Like ``withStore(_:)``, but also works during and after closing, for work that remains then.
    @inline(__always)
    func describingFailures<Value: ~Copyable>(
        _ body: (Store) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        let store = store
        do throws(CacheError) {
            return try body(store)
        } catch {
            throw described(error, of: store)
        }
    }

    /// Returns the error to throw after an error of `store`: ``CacheError/Code/directoryVanished`` if its directory is gone.
    ///
    /// If it can't be determined whether the directory is gone, the result is `error`.
    ///
    /// Not inlined, which would cost every get 80 instructions.
    @inline(never)
    func described(_ error: CacheError, of store: Store) -> CacheError {
        guard error.cause == .noEntry, (try? store.directory.isCurrent()) == false else { return error }
        return CacheError(.directoryVanished, to: "use", path: path, cause: .noEntry)
    }

    /// Switches to the directory that the path refers to now, creating it if it is missing.
    func reopen() throws(CacheError) {
        let store = try Store(at: path, options: configuration.storeOptions, replacing: store)
        // The memory tier switches first. From then on each of its values from the old directory is checked against
        // ``store``, to which puts go as well, before and after ``store`` is exchanged. The old store is released last,
        // under no lock.
        memory?.setStore(store)
        let old = openStore.withLock { present in
            defer { present = store }
            return present
        }
        memory?.removeAll(cause: .invalidated)
        withExtendedLifetime(old) {}
        events.send(.directoryReplaced)
    }

    /// This process's activity since the cache was opened; empty in a forked child of the process that opened it.
    var activity: CacheActivity {
        // In a child the mutexes may be held by threads that exist only in the parent.
        guard isOwn else { return CacheActivity() }
        let (counters, hits) = (store.counters, memory?.hits ?? 0)
        // The memory tier counts its own hits.
        return CacheActivity { counters[$0] + ($0 == .memoryHit ? hits : 0) }
    }

    // MARK: Accesses

    /// Remembers an access to a value in memory, so that it is recorded on disk later.
    func noteAccess(_ key: Digest, at now: Timestamp) {
        guard let memory else { return }
        memory.dueAccesses.withLock { $0.add(key, at: now) }
    }

    /// Records the accesses to values in memory on disk.
    ///
    /// Takes four system calls for each key, for at most ``DueAccesses/capacity`` keys.
    func flushAccesses() {
        guard let memory else { return }
        let store = store
        let now = now
        for (key, time) in memory.dueAccesses.withLock({ $0.take() }) {
            store.accesses.note(key, at: time, now: now)
        }
    }
}
