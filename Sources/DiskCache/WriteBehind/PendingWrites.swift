// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// A queued put, whose caller no longer waits for it.
final class PendingWrite: MemoryValue<Data>, @unchecked Sendable {
    let keyDigest: Digest
    /// How the value is kept in memory once it is published.
    let terms: MemoryPolicy
    private let stage = Locked(Stage.queued)

    /// The progress of publishing.
    private enum Stage {
        /// No other process can have seen the value.
        case queued
        /// The value is being written; the generation is the key's from before the write, nil without a control file.
        case writing(Generation?)
        case ended
    }

    /// Whether a get of this process may return the value.
    enum Standing {
        /// The value is the latest one.
        case latest
        /// Another process is writing concurrently: it may already have replaced or removed the value, or this value may
        /// yet replace what that process writes. The outcome is known once publishing has ended.
        case unsettled
        /// Publishing has ended: memory or the disk has the answer.
        case ended
    }

    var data: Data { value }

    /// Creates a queued put.
    ///
    /// - Parameters:
    ///   - draft: the record without the content's digest and checksum, whose computation would take the caller too long.
    ///   - terms: how the value is kept in memory once it is published.
    init(
        _ data: Data,
        forKey key: String,
        in space: KeySpace,
        _ keyDigest: Digest,
        draft: Record,
        _ terms: MemoryPolicy = MemoryPolicy()
    ) {
        self.keyDigest = keyDigest
        self.terms = terms
        super.init(data, key: key, in: space, record: draft, cost: data.count)
    }

    /// Returns the record as it will be published.
    ///
    /// - Complexity: O(*n*) in the value's bytes, which are hashed.
    override func makeRecord() -> Record { makeRecord(of: data.span) }

    /// Returns the record as it will be published, given the bytes of `data`.
    func makeRecord(of bytes: Span<UInt8>) -> Record {
        var record = record
        record.content = Content(of: bytes)
        return record
    }

    /// Records that only the entry is left to be written: from now on other processes may see the value, and replace it.
    func noteWriting(at generation: Generation?) {
        stage.withLock { stage in
            // The first generation is kept, because it reveals all writers since.
            if case .queued = stage { stage = .writing(generation) }
        }
    }

    /// Records that publishing has ended or failed.
    func noteEnd() {
        stage.withLock { $0 = .ended }
    }

    var isEnded: Bool {
        stage.withLock { if case .ended = $0 { true } else { false } }
    }

    /// Returns whether the value is the latest, according to the control file of `store`.
    func standing(in store: Store) -> Standing {
        switch stage.withLock({ $0 }) {
        case .queued: .latest
        case .writing(let generation): store.isLatest(generation) ? .latest : .unsettled
        case .ended: .ended
        }
    }

    /// Returns the value's freshness at `now`.
    func freshness(at now: Timestamp) -> Freshness {
        record.freshness(at: now, accessed: .distantPast)
    }
}

/// The queue of puts to be published: at most one waiting put for each key, first in, first out.
///
/// Pure policy, without threads or files. Two puts of a key are never published at the same time, so they become visible
/// in their order. Of several waiting puts of a key only the last one is published, because nothing guarantees that other
/// processes could have seen the others.
struct PendingWrites {
    private struct Place {
        var write: PendingWrite
        let sequence: Int
    }

    private struct Turn {
        let key: Digest
        let sequence: Int
    }

    private let limits: CacheConfiguration.WriteBehind
    private var waiting: [Digest: Place] = [:]
    private var publishing: [Digest: Place] = [:]
    /// The keys in the order of their first waiting put; a key whose put was taken out of turn is skipped.
    ///
    /// A slice removes its first element in O(1).
    private var turns: ArraySlice<Turn> = []
    private(set) var sequence = 0
    private(set) var bytes = 0
    /// Whether the background thread is draining the queue.
    var isDraining = false

    init(limits: CacheConfiguration.WriteBehind) {
        self.limits = limits
    }

    var count: Int { waiting.count + publishing.count }

    /// Adds a put; returns false if there is no room for it now.
    ///
    /// - Parameter old: receives the put that this one replaces. The caller must release it without holding a lock: the
    ///   value may have a deallocator that uses the cache.
    mutating func add(_ write: PendingWrite, replacing old: inout PendingWrite?) -> Bool {
        let replaced = waiting[write.keyDigest]
        let freed = replaced?.write.data.count ?? 0
        guard bytes - freed + write.data.count <= limits.size.bytes,
            count + (replaced == nil ? 1 : 0) <= limits.count
        else { return false }
        old = replaced?.write
        bytes += write.data.count - freed
        sequence += 1
        // The put takes over the turn of the one that it replaces, which has already waited.
        waiting[write.keyDigest] = Place(write: write, sequence: replaced?.sequence ?? sequence)
        if replaced == nil { turns.append(Turn(key: write.keyDigest, sequence: sequence)) }
        return true
    }

    /// Returns the put of `key` that a get of this process must see although it is not on disk yet.
    func latest(of key: Digest) -> PendingWrite? {
        waiting[key]?.write ?? publishing[key]?.write
    }

    /// Removes and returns the next put to publish; if none is available, ends draining and returns nil.
    mutating func takeNext() -> PendingWrite? {
        while let turn = turns.popFirst() {
            guard let place = waiting[turn.key], place.sequence == turn.sequence else { continue }
            // Otherwise a caller is publishing an earlier put of this key, and `finish` will give this one a new turn.
            if publishing[turn.key] == nil { return take(place) }
        }
        isDraining = false
        return nil
    }

    /// Returns whether a put of `key` is being published now.
    func isPublishing(_ key: Digest) -> Bool { publishing[key] != nil }

    /// Removes and returns the waiting put of `key` out of turn, if there is one; the caller must call ``finish(_:)``.
    mutating func take(_ key: Digest) -> PendingWrite? {
        guard let place = waiting[key] else { return nil }
        return take(place)
    }

    private mutating func take(_ place: Place) -> PendingWrite {
        waiting[place.write.keyDigest] = nil
        publishing[place.write.keyDigest] = place
        return place.write
    }

    /// Records that publishing a removed put has ended or failed.
    mutating func finish(_ write: PendingWrite) {
        guard publishing.removeValue(forKey: write.keyDigest) != nil else { return }
        bytes -= write.data.count
        // A put of the key that was added meanwhile may have lost its turn.
        if let place = waiting[write.keyDigest] {
            turns.append(Turn(key: write.keyDigest, sequence: place.sequence))
        }
    }

    /// Returns whether all puts up to this number are published or have failed.
    func isFinished(upTo sequence: Int) -> Bool {
        // Only a flush calls this, so the scan costs little compared with the writes.
        !waiting.values.contains { $0.sequence <= sequence }
            && !publishing.values.contains { $0.sequence <= sequence }
    }
}
