// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache
@testable import RemoteStore

/// An in-memory server whose behaviour a test controls.
final class FakeClient: RemoteClient {
    enum Mood: Sendable {
        case usual, failing, hanging, refusingWrites, denyingWrites, tooLong
        /// This process can send no requests.
        case unable
        /// Answers every request with success: changes are not stored, and gets return a wrong answer.
        case agreeing
        /// Accepts changes without an answer, and applies them only in ``carryOutLate()``.
        case dawdling
    }

    private struct State {
        var parcels: [Digest: RemoteEntry] = [:]
        var mood = Mood.usual
        var requests = 0
        var writes = 0
        var interference: (@Sendable () -> Void)?
        var late: [(key: Digest, parcel: RemoteEntry?)] = []
    }

    private let state = Locked(State())

    var requests: Int { state.withLock { $0.requests } }
    var writes: Int { state.withLock { $0.writes } }
    var count: Int { state.withLock { $0.parcels.count } }

    /// Runs `body` during the next put, before its value is stored.
    func interfere(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.interference = body } }

    func be(_ mood: Mood) { state.withLock { $0.mood = mood } }

    /// Returns the stored text of a key.
    func text(_ key: String) -> String? {
        guard !hasRemoval(of: key) else { return nil }
        return state.withLock {
            $0.parcels[Digest(ofKey: key)].map { String(decoding: $0.bytes, as: UTF8.self) }
        }
    }

    /// Returns whether the server has a value of the key.
    func has(_ key: String) -> Bool { record(key).map { !$0.isNothing } ?? false }

    /// Returns whether the server knows that the key was removed.
    func hasRemoval(of key: String) -> Bool { record(key)?.isNothing ?? false }

    /// Returns the record of a key.
    func record(_ key: String) -> Record? {
        let name = Digest(ofKey: key)
        return state.withLock { $0.parcels[name] }.flatMap { Record(decoding: $0.record, for: name) }
    }

    /// Stores this value with this record.
    func set(_ text: String, _ key: String, _ record: Record) {
        let name = Digest(ofKey: key)
        let bytes = record.encoded(for: name)
        let parcel = RemoteEntry(record: bytes, bytes: Data(text.utf8), digest: record.content.digest)
        state.withLock { $0.parcels[name] = parcel }
    }

    /// Loses a key.
    func forget(_ key: String) { state.withLock { $0.parcels[Digest(ofKey: key)] = nil } }

    func parcel(_ key: String) -> RemoteEntry? { state.withLock { $0.parcels[Digest(ofKey: key)] } }

    /// Replaces the entry of a key, as a restart with an old copy does.
    func restore(_ parcel: RemoteEntry, _ key: String) {
        state.withLock { $0.parcels[Digest(ofKey: key)] = parcel }
    }

    /// Applies the unanswered changes in their order.
    func carryOutLate() {
        state.withLock { state in
            for (key, parcel) in state.late { state.parcels[key] = parcel }
            state.late = []
        }
    }

    /// Damages the stored bytes of a key.
    func damage(_ key: String) {
        state.withLock { $0.parcels[Digest(ofKey: key)]?.bytes = Data("damaged".utf8) }
    }

    /// Stores another key's value under this key.
    func mix(_ key: String, with other: String) {
        state.withLock { $0.parcels[Digest(ofKey: key)] = $0.parcels[Digest(ofKey: other)] }
    }

    private func begin(
        _ change: (key: Digest, parcel: RemoteEntry?)?,
        _ deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) {
        let isWrite = change != nil
        let mood = state.withLock { state in
            state.requests += 1
            if isWrite { state.writes += 1 }
            return state.mood
        }
        switch mood {
        case .usual: return
        case .failing: throw RemoteFailure(.failed, "it fails")
        case .unable: throw RemoteFailure(.unable, "no descriptor is left")
        case .hanging:
            sleepThread(for: deadline - .now)
            throw RemoteFailure(.slow, "it hangs")
        case .agreeing: return
        case .tooLong: if !isWrite { throw RemoteFailure(.tooLong, "its value is long") }
        case .dawdling:
            guard let change else { return }
            state.withLock { $0.late.append(change) }
            throw RemoteFailure(.slow, "no answer", isOutcomeUnknown: true)
        case .denyingWrites: if isWrite { throw RemoteFailure(.denied, "it asks for a login") }
        case .refusingWrites: if isWrite { throw RemoteFailure(.refused, "it refuses") }
        }
    }

    func get(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) -> RemoteEntry? {
        try begin(nil, deadline)
        return try state.withLock { (state) throws(RemoteFailure) in
            if state.mood == .agreeing { throw RemoteFailure(.wrong, "a page") }
            return state.parcels[key]
        }
    }

    func putIfNewer(
        _ key: Digest,
        _ parcel: RemoteEntry,
        onlyReplacing: Bool,
        upTo latest: ChangeVersion,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> ChangeVersion? {
        try begin((key, parcel), deadline)
        if let interference = state.withLock({ exchange(&$0.interference, with: nil) }) { interference() }
        return state.withLock { state in
            if state.mood == .agreeing { return nil }
            let version = parcel.version(of: key)
            let present = state.parcels[key].map { $0.version(of: key) }
            let isLater = present.map {
                $0 >= version && !$0.isUnusable(after: max(version, latest), time: { .now })
            }
            if isLater ?? onlyReplacing { return present ?? ChangeVersion.none }
            state.parcels[key] = parcel
            return nil
        }
    }

    func remove(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) {
        try begin((key, nil), deadline)
        state.withLock { if $0.mood != .agreeing { $0.parcels[key] = nil } }
    }
}

/// Machines, each with its own directory, that share in-memory servers.
struct Machines {
    let directory: TemporaryDirectory
    var configuration = CacheConfiguration.Remote(servers: ["http://fake"])

    init() throws {
        directory = try TemporaryDirectory()
        configuration.limit = .seconds(60)
    }

    /// Opens a machine's cache with levels of one server each.
    func cache(
        _ machine: String,
        _ clients: FakeClient...,
        events: (@Sendable (CacheEvent) -> Void)? = nil,
        now: (@Sendable () -> Date)? = nil
    ) throws -> SharedCache {
        var options = CacheConfiguration()
        options.now = now
        options.janitor.isEnabled = false
        // So that a get reads the disk.
        options.memory = .none
        options.onEvent = events
        var terms = CircuitBreaker.Terms()
        (terms.firstPause, terms.longestPause) = (20, 20)
        let levels = clients.enumerated().map { index, client in
            RemoteLevel([RemoteServer("server \(index)", client, terms)], weights: [1])
        }
        let remote = configuration
        return try SharedCache(at: "\(directory.path)/\(machine)", configuration: options) {
            (host: RemoteContext) throws(CacheError) -> (any RemoteTier)? in
            ServerTier(levels, remote, host)
        }
    }

    /// Opens the same directory without servers.
    func plain(_ machine: String) throws -> SharedCache {
        var options = CacheConfiguration()
        options.janitor.isEnabled = false
        return try SharedCache(at: "\(directory.path)/\(machine)", configuration: options)
    }
}

extension SharedCache {
    /// Returns the text that a get finds.
    func text(_ key: String) throws -> String? {
        try get(forKey: key).map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// Waits until the sender has passed over all pending changes.
    func waitForPass() throws {
        let sender = try #require((remote?.tier as? ServerTier)?.sender)
        let before = sender.work.withLock { $0.passes }
        // One pass may be in progress.
        waitUntil("it tries again") { sender.work.withLock { $0.passes } >= before + 2 }
    }

    /// Removes a key's entry without a record in the outbox, as an eviction by a collection does.
    func evict(_ key: String) throws {
        try withStore { (store, _) throws(CacheError) in
            guard let stored = try store.entries.read(Digest(ofKey: key)) else { return }
            _ = try store.deleteEntry(Digest(ofKey: key), ifStill: stored.bytes)
        }
    }
}
