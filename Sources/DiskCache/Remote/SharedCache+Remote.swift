// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import FoundationEssentials
import Platform

// Between the disk and a computation: what other machines have. One request a key and machine goes out; what
// it brings is put on disk, by the rules of a computed value, and found there by all who have waited.

extension SharedCache {
    /// The value of `key`, or nil for a miss; what another machine has only where its key and its tags are among
    /// `selection`.
    package func get(
        forKey key: String,
        sharedIf selection: KeySelection
    ) throws(CacheError) -> CacheHit<Data>? {
        if let hit = try find(key, BytesCodec(), allowingStale: false) { return hit }
        guard selection.mayInclude(key: key) else { return nil }
        return findRemotely(key, BytesCodec(), among: selection)
    }

    /// The value of `key` from another machine, where this one has none; nil also where there is no time
    /// left.
    ///
    /// What fails is no more than a miss, and counted.
    ///
    /// - Parameters:
    ///   - selection: what it must be one of, by its key and its tags.
    ///   - deadline: when to wait no more; nil: the tier's limit from now on.
    func findRemotely<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        among selection: KeySelection = .all,
        until deadline: ContinuousClock.Instant? = nil
    ) -> CacheHit<Codec.Value>? {
        guard let remote, core.isOwn else { return nil }
        let digest = name(ofKey: key)
        // A put of this process that is still to be published: what others have is older.
        if !writeBehind.isIdle, writeBehind.latest({ digest }) != nil { return nil }
        let deadline = deadline ?? ContinuousClock.now + remote.tier.limit
        guard deadline > .now, remote.tier.isWorthAsking(digest) else {
            counters.add(.remoteSkipped)
            return nil
        }
        guard remote.enter(digest, until: deadline) else { return findHere(key, codec) }
        defer { remote.leave(digest) }
        do throws(CacheError) {
            return try ask(remote.tier, key, digest, codec, among: selection, until: deadline)
        } catch {
            counters.add(.cacheFailure)
            return nil
        }
    }

    /// The same, without blocking the thread; where none of ours is free, nothing is asked.
    func findRemotelyOffThread<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec
    ) async -> CacheHit<Codec.Value>? {
        guard let remote else { return nil }
        let deadline = ContinuousClock.now + remote.tier.limit
        return await offloadIfFree(on: .asking) {
            self.findRemotely(key, codec, until: deadline)
        }
    }

    /// What this machine has by now, without counting a failure as more than a miss.
    private func findHere<Codec: CacheCodec>(_ key: String, _ codec: Codec) -> CacheHit<Codec.Value>? {
        do throws(CacheError) {
            guard try isWorthGetting(key) else { return nil }
            return try find(key, codec, allowingStale: false)
        } catch {
            counters.add(.cacheFailure)
            return nil
        }
    }

    /// Asks as the only one of this process, and as the only one of all.
    private func ask<Codec: CacheCodec>(
        _ tier: any RemoteTier,
        _ key: String,
        _ digest: Digest,
        _ codec: Codec,
        among selection: KeySelection,
        until deadline: ContinuousClock.Instant
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        let store = core.store
        var backoff = Backoff(upTo: FlightLock.longestPause)
        var hasWaited = false
        while !store.requestLocks.attempt(digest) {
            hasWaited = true
            let rest = deadline - .now
            guard rest > .zero else { return nil }
            sleepThread(for: min(backoff.next(), rest))
        }
        defer { store.requestLocks.release(digest) }
        // What another one has brought, if anything, is here.
        guard !hasWaited, let absence = try store.absence(of: digest, now: now) else {
            return findHere(key, codec)
        }
        guard let value = tier.look(digest, until: deadline), selection.includes(value.record, of: key) else {
            return nil
        }
        return try adopt(value, key, digest, codec, since: absence, of: tier, in: store)
    }

    /// Puts what came on disk and in memory, unless somebody has written or removed the key meanwhile.
    private func adopt<Codec: CacheCodec>(
        _ value: RemoteValue,
        _ key: String,
        _ digest: Digest,
        _ codec: Codec,
        since absence: Store.Absence,
        of tier: any RemoteTier,
        in store: Store
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        let moment = now
        let isNamed = configuration.keyNames == .stored && key.utf8.count <= RecordCodec.longestKey
        let record = value.record.arrived(
            at: moment,
            content: value.content,
            key: isNamed ? key : nil
        )
        guard let held = held(value.bytes, key, codec, record) else { return nil }
        let hit = CacheHit(held, from: .remote, isStale: false, at: moment)
        let outcome: PublishOutcome
        do throws(CacheError) {
            // Room is made at once or not at all: the value is there.
            outcome = try store.adopt(
                value.bytes.span,
                for: digest,
                record,
                since: absence,
                now: moment,
                RoomTerms(patience: .zero)
            )
        } catch {
            // It can't be kept, and is right all the same, if it still is.
            counters.add(.cacheFailure)
            guard store.isCurrent(absence) else { return findHere(key, codec) }
            counters.add(.remoteHit)
            return hit
        }
        guard case .published(let generation) = outcome else { return findHere(key, codec) }
        counters.add(.remoteHit)
        tier.adopted(value, for: digest)
        let terms = configuration.memory.terms
        if let generation, terms.keeps != .diskOnly {
            core.hold(held, generation, until: terms.end(record.heldUntil, from: moment), of: store)
        }
        return hit
    }
}
