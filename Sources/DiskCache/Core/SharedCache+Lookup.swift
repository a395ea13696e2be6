// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// The result of a lookup that does not read the disk.
private enum TierAnswer<Value: Sendable> {
    case hit(CacheHit<Value>)
    /// The key has no value, even if there is one on disk.
    case miss
    /// A queued put has the answer, but only for a thread that may wait for the put and run the program's code.
    case unsettled(PendingWrite)
    /// The disk must be read.
    case unknown
}

// All lookups of values are here. They search the queued puts of this process, its memory, the disk, and then remote
// servers.

extension SharedCache {
    /// Returns the value of `key`, decoded by `codec`.
    @inline(__always)
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        if let hit = try findHere(key, codec, acceptsStale: false) { return hit }
        return remote == nil ? nil : findRemotely(key, codec)
    }

    /// Returns the value of `key`, decoded by `codec`, if `reading` accepts it.
    @specialized(where Codec == BytesCodec)
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ reading: ReadOptions
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        let (oldest, readsDisk) = (reading.oldest(at: now), reading.source != .memory)
        let hit = try findHere(key, codec, acceptsStale: reading.acceptsStale, readsDisk: readsDisk)
        if let hit, !hit.isOlder(than: oldest) { return hit }
        guard remote != nil, reading.mayAskRemote, let hit = findRemotely(key, codec) else { return nil }
        return hit.isOlder(than: oldest) ? nil : hit
    }

    /// Returns the value of `key` without blocking the thread; a hit in memory doesn't switch threads.
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ reading: ReadOptions
    ) async throws(CacheError) -> CacheHit<Codec.Value>? {
        let (oldest, stale, readsDisk) = (
            reading.oldest(at: now), reading.acceptsStale, reading.source != .memory
        )
        var hit: CacheHit<Codec.Value>?
        switch try findInProcess(key, codec, acceptsStale: stale, readsDisk: false, mayRunCode: false) {
        case .hit(let found): hit = found
        case .miss: break
        case .unsettled, .unknown:
            // Returning bytes from memory neither waits nor runs the program's code.
            if !readsDisk, Codec.self == BytesCodec.self {
                hit = try findHere(key, codec, acceptsStale: stale, readsDisk: false)
            } else {
                hit = try await offload(on: .reading) { () throws(CacheError) in
                    try self.findHere(key, codec, acceptsStale: stale, readsDisk: readsDisk)
                }
            }
        }
        if let hit, !hit.isOlder(than: oldest) { return hit }
        guard remote != nil, reading.mayAskRemote, let hit = await findRemotelyOffThread(key, codec) else {
            return nil
        }
        return hit.isOlder(than: oldest) ? nil : hit
    }

    /// Returns the value of `key`, of any age, from the first place on this machine that has an answer.
    ///
    /// - Parameter readsDisk: if false, a value that is not in memory is a miss.
    @inline(__always)
    func findHere<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        acceptsStale: Bool,
        readsDisk: Bool = true
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        switch try findInProcess(
            key,
            codec,
            acceptsStale: acceptsStale,
            readsDisk: readsDisk,
            mayRunCode: true
        ) {
        case .hit(let hit): return hit
        case .miss: return nil
        case .unsettled(let write) where readsDisk:
            // This happens only while another process writes concurrently. The wait is short: this process's own put
            // already holds its locks, and only its last step is left.
            if writeBehind.awaitEnd(of: write) {
                return try findAgain(key, codec, acceptsStale: acceptsStale)
            }
            counters.add(.miss)
            return nil
        case .unknown where readsDisk: return try findOnDisk(key, codec, acceptsStale: acceptsStale)
        case .unsettled, .unknown:
            // Rejects an empty key, which no tier contains. Checked last, because it hashes the key.
            _ = try digest(ofKey: key)
            counters.add(.miss)
            return nil
        }
    }

    /// Returns whether a get of `key` may find a value; never waits for a put, and never counts a miss.
    func isWorthGetting(_ key: String, allowingStale: Bool = false) throws(CacheError) -> Bool {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        if writeBehind.latest({ digest }) != nil { return true }
        // The value may be in memory only.
        if core.memory?.contains(key, in: space) ?? false { return true }
        return try isPublished(digest, allowingStale: allowingStale)
    }

    /// Calls ``findHere(_:_:acceptsStale:readsDisk:)`` again after a put has ended; not inlined.
    private func findAgain<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        acceptsStale: Bool
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        try findHere(key, codec, acceptsStale: acceptsStale)
    }

    // MARK: Metadata

    /// Returns the metadata of the value of `digest` on disk, without waiting for queued puts; nil for a miss.
    func publishedEntry(
        _ digest: Digest,
        _ key: String,
        _ reading: ReadOptions
    ) throws(CacheError) -> CacheEntry? {
        try withStore { (store, now) throws(CacheError) in
            guard let live = try store.liveEntry(digest, now: now, allowingStale: reading.acceptsStale),
                !live.record.isOlder(than: reading.oldest(at: now)),
                let status = try store.directory.status(of: digest, .entries)
            else { return nil }
            return CacheEntry(
                live.record,
                keyDigest: digest,
                key: key,
                accessed: status.accessed,
                now: now
            )
        }
    }

    /// Returns whether `digest` has a value on disk, without waiting for queued puts.
    func isPublished(_ digest: Digest, allowingStale: Bool = false) throws(CacheError) -> Bool {
        try withStore { (store, now) throws(CacheError) in
            try store.liveEntry(digest, now: now, allowingStale: allowingStale) != nil
        }
    }

    // MARK: Tiers

    /// Looks up the queued puts and then the memory of this process.
    ///
    /// - Parameters:
    ///   - readsDisk: whether the disk may be read; without a control file even a hit in memory reads it.
    ///   - mayRunCode: whether this thread may decode values and restore discarded parts.
    @inline(__always)
    private func findInProcess<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        acceptsStale: Bool,
        readsDisk: Bool,
        mayRunCode: Bool
    ) throws(CacheError) -> TierAnswer<Codec.Value> {
        try core.checkOpen()
        if !readsDisk, !core.store.hasGenerations { return .unknown }
        if !writeBehind.isIdle {
            let answer = findQueued(key, codec, acceptsStale: acceptsStale, mayRunCode: mayRunCode)
            guard case .unknown = answer else { return answer }
        }
        let form = ObjectIdentifier(Codec.self)
        guard let found = core.held(key, in: space, form, as: Codec.Value.self, mayRestore: mayRunCode) else {
            return .unknown
        }
        return .hit(CacheHit(found.held, from: .memory, isStale: false, at: found.moment))
    }

    /// Looks up the queued puts of this process.
    private func findQueued<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        acceptsStale: Bool,
        mayRunCode: Bool
    ) -> TierAnswer<Codec.Value> {
        guard let write = writeBehind.latest({ name(ofKey: key) }) else { return .unknown }
        switch write.standing(in: core.store) {
        case .latest: break
        case .unsettled: return .unsettled(write)
        case .ended: return .unknown
        }
        let (now, isOfBytes) = (now, Codec.self == BytesCodec.self)
        let freshness = write.freshness(at: now)
        guard isOfBytes || mayRunCode else { return .unsettled(write) }
        guard freshness == .fresh || freshness == .stale && acceptsStale,
            let held = isOfBytes
                ? write as MemoryEntry as? MemoryValue<Codec.Value>
                : held(write.data, key, codec, write.makeRecord())
        else {
            // The disk is not read: any value there is older than this put.
            counters.add(.miss)
            return .miss
        }
        counters.add(freshness == .fresh ? .memoryHit : .staleHit)
        return .hit(CacheHit(held, from: .memory, isStale: freshness == .stale, at: now))
    }

    /// Reads the value from disk and keeps it in memory.
    private func findOnDisk<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        acceptsStale: Bool
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        let (store, now) = (core.store, now)
        let found: StoreHit<Data>?
        do throws(CacheError) {
            found = try store.get(digest, now: now, allowingStale: acceptsStale)
        } catch {
            throw core.described(error, of: store)
        }
        guard let found, let held = held(found.value, key, codec, found.record) else { return nil }
        // Kept only if later hits can check the value: by its generation or, without a control file, by its record.
        let (entry, terms) = (found.entry, configuration.memory.terms)
        if !entry.isStale, entry.generation != nil || !store.hasGenerations, terms.keeps != .diskOnly {
            let end = terms.end(found.heldUntil, from: now)
            core.hold(held, by: MemoryValidity(generation: entry.generation, heldUntil: end), of: store)
        }
        return CacheHit(held, from: .disk, isStale: entry.isStale, at: now)
    }

    /// Returns the value encoded in `bytes`; nil, which is a miss, if another version of the program or another codec
    /// wrote them.
    @inline(__always)
    func held<Codec: CacheCodec>(
        _ bytes: consuming Data,
        _ key: String,
        _ codec: Codec,
        _ record: Record
    ) -> MemoryValue<Codec.Value>? {
        let (form, size) = (ObjectIdentifier(Codec.self), bytes.count)
        let valueCost = configuration.memory.valueCost
        // The bytes are moved, not decoded: the codec would copy them, which takes 140 instructions.
        if Codec.self == BytesCodec.self {
            let held = MemoryValue(
                bytes,
                key: key,
                in: space,
                form: form,
                record: record,
                cost: valueCost ?? size
            )
            return held as MemoryEntry as? MemoryValue<Codec.Value>
        }
        guard let value = try? codec.decode(bytes) else { return nil }
        let cost = valueCost ?? codec.cost(of: value, encodedSize: size)
        return MemoryValue(value, key: key, in: space, form: form, record: record, cost: cost)
    }
}
