// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// A tier's answer for a key.
private enum TierAnswer<Value: Sendable> {
    case hit(CacheHit<Value>)
    /// The key has no value, regardless of lower tiers.
    case miss
    /// A put of this process must end first, on a thread that may wait and run the program's code.
    case unsettled(PendingWrite)
    /// The lower tiers must be asked.
    case unknown
}

// Only this file combines the tiers. A new tier is a type in a separate folder and a step in `find`.

extension SharedCache {
    /// Returns the value of `key`, decoded by `codec`, if `reading` accepts it.
    @inline(__always)
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ reading: ReadOptions
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        if reading.takesAnyAge {
            if let hit = try find(key, codec, allowingStale: reading.acceptsStale) { return hit }
        } else if let hit = try findChosen(key, codec, reading) {
            return hit
        }
        return remote == nil ? nil : findRemotely(key, codec, reading)
    }

    /// Returns the value of a remote server, if `reading` accepts it.
    @inline(never)
    private func findRemotely<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ reading: ReadOptions
    ) -> CacheHit<Codec.Value>? {
        guard reading.asksRemote, reading.source != .memory else { return nil }
        let oldest = reading.oldest(at: now)
        let hit = findRemotely(key, codec)
        return hit.flatMap { $0.held.record.isOlder(than: oldest) ? nil : $0 }
    }

    /// Returns the value for a read that looks only in memory, or limits the value's age.
    @inline(never)
    private func findChosen<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ reading: ReadOptions
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        let oldest = reading.oldest(at: now)
        let hit =
            reading.source == .memory
            ? try findInMemory(key, codec, allowingStale: reading.acceptsStale)
            : try find(key, codec, allowingStale: reading.acceptsStale)
        return hit.flatMap { $0.held.record.isOlder(than: oldest) ? nil : $0 }
    }

    /// Returns the value, if this process has it without reading the disk.
    private func findInMemory<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        try core.checkOpen()
        // Without a control file even a hit in memory reads the disk.
        if core.store.hasGenerations {
            switch try answerInProcess(key, codec, allowingStale: allowingStale, mayRunCode: true) {
            case .hit(let hit): return hit
            case .miss: return nil
            case .unsettled, .unknown: break
            }
        }
        // Rejects an empty key, which no tier has; checked last, because it hashes.
        _ = try digest(ofKey: key)
        counters.add(.miss)
        return nil
    }

    /// Returns the value of `key` if `reading` accepts it, without blocking the thread.
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ reading: ReadOptions
    ) async throws(CacheError) -> CacheHit<Codec.Value>? {
        if reading.takesAnyAge, remote == nil || !reading.asksRemote {
            return try await find(key, codec, allowingStale: reading.acceptsStale)
        }
        if reading.source == .memory {
            // Returning bytes runs none of the program's code.
            if Codec.self == BytesCodec.self { return try findChosen(key, codec, reading) }
            return try await offload(on: .reading) { () throws(CacheError) in
                try self.findChosen(key, codec, reading)
            }
        }
        let oldest = reading.oldest(at: now)
        var hit = try await find(key, codec, allowingStale: reading.acceptsStale)
        if let found = hit, found.held.record.isOlder(than: oldest) { hit = nil }
        if hit != nil || remote == nil || !reading.asksRemote { return hit }
        hit = await findRemotelyOffThread(key, codec)
        return hit.flatMap { $0.held.record.isOlder(than: oldest) ? nil : $0 }
    }

    /// Returns the value of `key`, decoded by `codec`, from the first tier that has an answer: the unpublished puts of this
    /// process, its memory, the disk.
    ///
    /// Remote servers are not asked.
    @inline(__always)
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        switch try answerInProcess(key, codec, allowingStale: allowingStale, mayRunCode: true) {
        case .hit(let hit): hit
        case .miss: nil
        case .unsettled(let write): try findAfterEnd(of: write, key, codec, allowingStale: allowingStale)
        case .unknown: try readThrough(key, codec, allowingStale: allowingStale)
        }
    }

    /// Returns the value after `write` has ended; nil, a miss, if that takes longer than a moment.
    ///
    /// Waits only for the last step of this process's own put, which already holds its locks, while another process writes
    /// concurrently.
    private func findAfterEnd<Codec: CacheCodec>(
        of write: PendingWrite,
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        if writeBehind.awaitEnd(of: write) { return try find(key, codec, allowingStale: allowingStale) }
        counters.add(.miss)
        return nil
    }

    /// Returns the value without blocking the thread; a hit in memory doesn't change threads.
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool
    ) async throws(CacheError) -> CacheHit<Codec.Value>? {
        try core.checkOpen()
        // Without a control file even a hit in memory reads the disk.
        if core.store.hasGenerations {
            switch try answerInProcess(key, codec, allowingStale: allowingStale, mayRunCode: false) {
            case .hit(let hit): return hit
            case .miss: return nil
            case .unsettled, .unknown: break
            }
        }
        return try await offload(on: .reading) { () throws(CacheError) in
            try self.find(key, codec, allowingStale: allowingStale)
        }
    }

    // MARK: Tiers

    /// Returns the answer of this process without the disk.
    ///
    /// - Parameter mayRunCode: whether this thread may decode values and restore discarded parts.
    @inline(__always)
    private func answerInProcess<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool,
        mayRunCode: Bool
    ) throws(CacheError) -> TierAnswer<Codec.Value> {
        try core.checkOpen()
        if !writeBehind.isIdle {
            let answer = pendingAnswer(key, codec, allowingStale: allowingStale, mayRunCode: mayRunCode)
            guard case .unknown = answer else { return answer }
        }
        let form = ObjectIdentifier(Codec.self)
        guard let found = core.held(key, in: space, form, as: Codec.Value.self, mayRestore: mayRunCode) else {
            return .unknown
        }
        return .hit(CacheHit(found.held, from: .memory, isStale: false, at: found.moment))
    }

    /// Returns the answer of the pending puts.
    private func pendingAnswer<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool,
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
        guard freshness == .fresh || freshness == .stale && allowingStale,
            let held = isOfBytes
                ? write as HeldItem as? HeldValue<Codec.Value>
                : held(write.data, key, codec, write.makeRecord())
        else {
            // The value on disk is older than this put.
            counters.add(.miss)
            return .miss
        }
        counters.add(freshness == .fresh ? .memoryHit : .staleHit)
        return .hit(CacheHit(held, from: .memory, isStale: freshness == .stale, at: now))
    }

    /// Reads the value from disk and keeps it in memory.
    private func readThrough<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, now) throws(CacheError) in
            guard let hit = try store.get(digest, now: now, allowingStale: allowingStale),
                let held = held(hit.value, key, codec, hit.record)
            else { return nil }
            // Kept only if it can be checked later, by its generation or by its record.
            let terms = configuration.memory.terms
            if !hit.isStale, hit.generation != nil || !store.hasGenerations, terms.keeps != .diskOnly {
                let end = terms.end(hit.heldUntil, from: now)
                core.hold(held, hit.generation, until: end, of: store)
            }
            return CacheHit(held, from: .disk, isStale: hit.isStale, at: now)
        }
    }

    /// Returns the value encoded in `bytes`; nil, a miss, if another version of the program or another codec wrote them.
    @inline(__always)
    func held<Codec: CacheCodec>(
        _ bytes: consuming Data,
        _ key: String,
        _ codec: Codec,
        _ record: Record
    ) -> HeldValue<Codec.Value>? {
        let (form, size) = (ObjectIdentifier(Codec.self), bytes.count)
        let valueCost = configuration.memory.valueCost
        // Moved here: the codec would copy the bytes, which takes 140 instructions.
        if Codec.self == BytesCodec.self {
            let held = HeldValue(
                bytes,
                key: key,
                in: space,
                form: form,
                record: record,
                cost: valueCost ?? size
            )
            return held as HeldItem as? HeldValue<Codec.Value>
        }
        guard let value = try? codec.decode(bytes) else { return nil }
        let cost = valueCost ?? codec.cost(of: value, encodedSize: size)
        return HeldValue(value, key: key, in: space, form: form, record: record, cost: cost)
    }
}
