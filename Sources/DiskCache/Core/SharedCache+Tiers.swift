// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// What a tier says about a key.
private enum TierAnswer<Value: Sendable> {
    case hit(CacheHit<Value>)
    /// There is no value, whatever the tiers below have.
    case miss
    /// A put of this process has to end first, on a thread that may wait and run the program's code.
    case unsettled(PendingWrite)
    /// The tiers below are to be asked.
    case unknown
}

// The line of tiers is put together here and nowhere else. A new one is a type in a folder of its own and a step of
// `find`.

extension SharedCache {
    /// The value of `key`, as `codec` reads it, if `reading` accepts it.
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

    /// What other machines have, as far as `reading` accepts it.
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

    /// The same for a read that looks in memory alone, or that asks for the value's age.
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

    /// The value, if this process can give it out without the disk.
    private func findInMemory<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        try core.checkOpen()
        // Without a control file even a hit in memory asks the disk.
        if core.store.hasGenerations {
            switch try answerInProcess(key, codec, allowingStale: allowingStale, mayRunCode: true) {
            case .hit(let hit): return hit
            case .miss: return nil
            case .unsettled, .unknown: break
            }
        }
        // Refuses an empty key, which no tier has; asked last, as it hashes.
        _ = try digest(ofKey: key)
        counters.add(.miss)
        return nil
    }

    /// The value of `key` if `reading` accepts it, without blocking the thread.
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ reading: ReadOptions
    ) async throws(CacheError) -> CacheHit<Codec.Value>? {
        if reading.takesAnyAge, remote == nil || !reading.asksRemote {
            return try await find(key, codec, allowingStale: reading.acceptsStale)
        }
        if reading.source == .memory {
            // Bytes need no code of the program's to be given out.
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

    /// The value of `key`, as `codec` reads it, from the first tier that has an answer: the puts of this
    /// process that are not published yet, its memory, the files.
    ///
    /// Other machines are not asked.
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

    /// What there is once `write` has ended; a miss where that takes longer than a moment.
    ///
    /// Waits only for the last step of this process's own put, which has its locks, where another process writes
    /// beside it.
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

    /// The same, without blocking the thread; a hit in memory doesn't change threads.
    func find<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        allowingStale: Bool
    ) async throws(CacheError) -> CacheHit<Codec.Value>? {
        try core.checkOpen()
        // Without a control file even a hit in memory asks the disk.
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

    /// What this process can say without the disk.
    ///
    /// - Parameter mayRunCode: whether this thread may decode values, and make whole what was discarded in part.
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

    /// What the puts that wait to be published say.
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
            // What is still on disk was put before it.
            counters.add(.miss)
            return .miss
        }
        counters.add(freshness == .fresh ? .memoryHit : .staleHit)
        return .hit(CacheHit(held, from: .memory, isStale: freshness == .stale, at: now))
    }

    /// Reads the value from disk, and keeps it in memory.
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
            // Nothing is kept that can be checked later neither by its generation nor by its record.
            let terms = configuration.memory.terms
            if !hit.isStale, hit.generation != nil || !store.hasGenerations, terms.keeps != .diskOnly {
                let end = terms.end(hit.heldUntil, from: now)
                core.hold(held, hit.generation, until: end, of: store)
            }
            return CacheHit(held, from: .disk, isStale: hit.isStale, at: now)
        }
    }

    /// The value that `bytes` stand for; nil, a miss, if another version of the program or another codec wrote them.
    @inline(__always)
    func held<Codec: CacheCodec>(
        _ bytes: consuming Data,
        _ key: String,
        _ codec: Codec,
        _ record: Record
    ) -> HeldValue<Codec.Value>? {
        let (form, size) = (ObjectIdentifier(Codec.self), bytes.count)
        let valueCost = configuration.memory.valueCost
        // The codec would copy what is moved here: 140 instructions.
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
