// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import FoundationEssentials
import Platform

// Remote servers are asked after the disk and before a computation. A machine sends only one request for a key at a time.
// A received value is stored on disk, by the rules for a computed value, where all waiting callers find it.

extension SharedCache {
    /// Returns the value of `key`, or nil for a miss; accepts a remote value only if `selection` includes its key and
    /// tags.
    package func get(
        forKey key: String,
        sharedIf selection: KeySelection
    ) throws(CacheError) -> CacheHit<Data>? {
        if let hit = try findHere(key, BytesCodec(), acceptsStale: false) { return hit }
        guard selection.mayInclude(key: key) else { return nil }
        return findRemotely(key, BytesCodec(), among: selection)
    }

    /// Returns the value of `key` from a remote server, or from this machine if another caller has stored one meanwhile;
    /// nil for a miss, or if no time is left.
    ///
    /// A failure is counted, and is only a miss.
    ///
    /// - Parameters:
    ///   - selection: the keys and tags of the values to accept.
    ///   - deadline: when to stop waiting; nil for the tier's limit from now on.
    func findRemotely<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        among selection: KeySelection = .all,
        until deadline: ContinuousClock.Instant? = nil
    ) -> CacheHit<Codec.Value>? {
        guard let remote, core.isOwn else { return nil }
        let digest = name(ofKey: key)
        // A queued put of this process is newer than remote values.
        if !writeBehind.isIdle, writeBehind.latest({ digest }) != nil { return nil }
        let deadline = deadline ?? ContinuousClock.now + remote.tier.limit
        guard deadline > .now, remote.tier.isWorthAsking(digest) else {
            counters.add(.remoteSkipped)
            return nil
        }
        guard remote.enter(digest, until: deadline) else { return storedMeanwhile(key, codec) }
        defer { remote.leave(digest) }
        do throws(CacheError) {
            return try ask(remote.tier, key, digest, codec, among: selection, until: deadline)
        } catch {
            counters.add(.cacheFailure)
            return nil
        }
    }

    /// Returns the value from a remote server without blocking the thread; asks no server if no library thread is free.
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

    /// Returns the value that another caller has stored on this machine; a failure is counted, and is only a miss.
    private func storedMeanwhile<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec
    ) -> CacheHit<Codec.Value>? {
        do throws(CacheError) {
            guard try isWorthGetting(key) else { return nil }
            return try findHere(key, codec, acceptsStale: false)
        } catch {
            counters.add(.cacheFailure)
            return nil
        }
    }

    /// The longest wait for another process that asks for the same key.
    private static let requestPatience: Duration = .milliseconds(700)

    /// Asks the servers, while no other thread or process on this machine asks them for the same key.
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
        // If the process that asks is stopped, this one asks, too.
        let end = min(deadline, .now + Self.requestPatience)
        var isHolding = store.requestLocks.attempt(digest)
        while !isHolding {
            hasWaited = true
            let rest = end - .now
            if rest <= .zero { break }
            sleepThread(for: min(backoff.next(), rest))
            isHolding = store.requestLocks.attempt(digest)
        }
        defer { if isHolding { store.requestLocks.release(digest) } }
        guard isHolding || deadline > .now else { return nil }
        // If another caller has received a value meanwhile, it is on this machine now.
        let hasOtherAsked = hasWaited && isHolding
        guard !hasOtherAsked, let absence = try store.absence(of: digest, now: now) else {
            return storedMeanwhile(key, codec)
        }
        guard let value = tier.look(digest, until: deadline), selection.includes(value.record, of: key) else {
            return nil
        }
        return try adopt(value, key, digest, codec, since: absence, of: tier, in: store)
    }

    /// Stores a received value on disk and in memory, unless the key was written or removed meanwhile.
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
        let isNamed = configuration.keyNames == .stored && key.utf8.count <= Record.longestKey
        let record = value.record.arrived(
            at: moment,
            content: value.content,
            key: isNamed ? key : nil
        )
        guard let held = held(value.bytes, key, codec, record) else { return nil }
        let hit = CacheHit(held, from: .remote, isStale: false, at: moment)
        let outcome: WriteResult
        do throws(CacheError) {
            // Disk space is made at once or not at all: the caller receives the value anyway.
            outcome = try store.adopt(
                value.bytes.span,
                for: digest,
                record,
                since: absence,
                now: moment,
                SpaceWait(patience: .zero)
            )
        } catch {
            // The value can't be stored, but the caller can have it if no process has written the key since the request.
            counters.add(.cacheFailure)
            guard try store.mayReturnUnstored(record, for: digest, since: absence) else {
                return storedMeanwhile(key, codec)
            }
            counters.add(.remoteHit)
            return hit
        }
        guard case .written(let generation) = outcome else { return storedMeanwhile(key, codec) }
        counters.add(.remoteHit)
        tier.adopted(value, for: digest)
        let terms = configuration.memory.terms
        if let generation, terms.keeps != .diskOnly {
            let end = terms.end(record.heldUntil, from: moment)
            core.hold(held, by: MemoryValidity(generation: generation, heldUntil: end), of: store)
        }
        return hit
    }
}
