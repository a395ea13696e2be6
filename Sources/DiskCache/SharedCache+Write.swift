// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

extension SharedCache {
    /// Stores `data` under `key`, replacing an existing value.
    ///
    /// After it returns, every get that starts later in any process sees the value; with
    /// ``CacheConfiguration/Writing/behind`` only this process does at first. Equal bytes under several keys are stored
    /// once. Takes eleven system calls if the bytes and the key exist already, fourteen for new bytes, and one more for a
    /// new key; after eight puts that were all new, thirteen for the next new one. A put of new bytes takes one more every
    /// half second, to check whether the directory has other limits, and one if there is a minimum of free space.
    ///
    /// - Parameters:
    ///   - data: the value.
    ///   - key: any non-empty string.
    ///   - options: expiration, metadata and placement of the value.
    /// - Throws: ``CacheError``; the previous value then still exists, unless it was so large that it had to be removed to
    ///   make room for the new one (<doc:SharingBetweenProcesses#How-limits-hold>).
    public func put(
        _ data: Data,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) {
        if waitsForNobody(options) {
            let write = try pendingWrite(data, forKey: key, options)
            // A value larger than the whole queue is written through.
            if writeBehind.put(write) { return }
        }
        let data = try withIndicesFromZero(data)
        if keepsInMemoryAlone(options) {
            _ = try keepInMemory(data, forKey: key, codec, options, isComputed: false)
            return
        }
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        // Computed once: each access costs 200 instructions in `Data`.
        let bytes = data.span
        let record = try record(of: Content(of: bytes), key: key, options, now: now)
        if let validity = try write(bytes, forKey: key, digest, record, options) {
            // Made only if it is kept, as it costs two allocations.
            let cost = memoryCost(options) ?? data.count
            core.hold(
                MemoryValue(data, key: key, in: space, record: record, cost: cost),
                by: validity,
                of: core.store
            )
        }
    }

    /// Writes a value to disk, after the queued put of its key, if there is one.
    ///
    /// - Returns: the validity by which memory may hold the value; nil if it may not.
    func write(
        _ bytes: Span<UInt8>,
        forKey key: String,
        _ digest: Digest,
        _ record: Record,
        _ options: PutOptions,
        _ wait: SpaceWait = SpaceWait()
    ) throws(CacheError) -> MemoryValidity? {
        // A queued put is published, not dropped: gets must see its value until this one is on disk, and if this one fails.
        writeBehind.settle(digest)
        let generation = try core.describingFailures { (store) throws(CacheError) in
            try store.put(bytes, for: digest, record, wait)
        }
        let terms = configuration.memory.terms(of: options)
        if terms.keeps == .diskOnly { forget(key, .replaced) }
        return core.memory == nil ? nil : terms.validity(of: record, writtenAt: generation)
    }

    /// Whether a put with these options may return before the value is on disk; false for memory-only values.
    func waitsForNobody(_ options: PutOptions) -> Bool {
        (options.writing ?? configuration.writing) == .behind && !keepsInMemoryAlone(options)
    }

    /// Whether a value with these options is never written to disk.
    func keepsInMemoryAlone(_ options: PutOptions) -> Bool {
        (options.keeps ?? configuration.memory.keeps) == .memoryOnly
    }

    /// The cost in memory of a value with these options; nil for its size, or its codec's cost.
    func memoryCost(_ options: PutOptions) -> Int? { options.memoryCost ?? configuration.memory.valueCost }

    func pendingWrite(_ data: Data, forKey key: String, _ options: PutOptions) throws(CacheError)
        -> PendingWrite
    {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        let unknown = Content(digest: digest, length: data.count, checksum: 0)
        let draft = try record(of: unknown, key: key, options, now: now)
        let terms = configuration.memory.terms(of: options)
        return PendingWrite(
            try withIndicesFromZero(data),
            forKey: key,
            in: space,
            digest,
            draft: draft,
            terms
        )
    }

    /// Returns the same bytes with indices from 0, as a get from disk does: a slice keeps the indices of its base.
    func withIndicesFromZero(_ data: Data) throws(CacheError) -> Data {
        if data.startIndex == 0 { return data }
        return try describing("copy \(data.count) bytes for", path) { () throws(Errno) in
            try Data(copying: data.span)
        }
    }

    /// Stores `data` unless `key` already has a value.
    ///
    /// If any number of processes call this at once, exactly one of them stores its value.
    ///
    /// - Returns: whether `data` was stored.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func putIfAbsent(
        _ data: Data,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        let content = Content(of: data.span)
        return try repeatingConflicts { () throws(CacheError) -> Bool? in
            let observed = try withStore { (store, now) throws(CacheError) in
                try store.observePresence(of: digest, now: now)
            }
            if observed.isPresent { return false }
            guard try replace(observed.stored, with: data, content, digest, key, options) else { return nil }
            return true
        }
    }

    /// Removes the value of `key`.
    ///
    /// Six system calls. The next collection reclaims the space of its bytes.
    ///
    /// - Returns: whether an unexpired value was removed from disk. Stale values and values only in memory are removed too,
    ///   but return false.
    @discardableResult
    public func remove(forKey key: String) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        let name = configuration.keyNames == .stored ? key : nil
        let isRemoved = try withStore { (store, now) throws(CacheError) in
            try store.remove(digest, now: now, name: name)
        }
        forget(key, .explicit)
        return isRemoved
    }

    /// Records an access of `key`, which also extends a sliding expiration.
    ///
    /// Seven system calls.
    ///
    /// - Returns: false if a get would miss.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func touch(forKey key: String) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) in try store.touch(digest) { now } }
    }

    /// Replaces the expiration of the value of `key`, and keeps everything else that was stored with it.
    ///
    /// With `.expired` and a stale period the value becomes stale: a get misses, and readers that accept stale values still
    /// get it. With any other expiration this counts as an access, so `onAccess` applies at once.
    ///
    /// - Parameters:
    ///   - expires: the new expiration.
    ///   - onAccess: the effect of accesses on it, instead of the previous effect.
    ///   - staleFor: the new stale period (``PutOptions/staleFor``); nil keeps the present one.
    ///   - key: any non-empty string.
    /// - Returns: false if a get would miss.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func setExpiration(
        _ expires: Expiration,
        onAccess: Expiration.OnAccess = .keep,
        staleFor: Duration? = nil,
        forKey key: String
    ) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        let isChanged = try repeatingConflicts { () throws(CacheError) -> Bool? in
            try withStore { (store, now) throws(CacheError) -> Bool? in
                if let live = try store.liveEntry(digest, now: now, allowingStale: false) {
                    var record = live.record
                    let period = staleFor ?? record.staleFor
                    try apply(expires, onAccess, staleFor: period, to: &record, now: now)
                    switch try store.rewrite(record, for: digest, ifStill: live.stored, now: now) {
                    case .written: return true
                    case .conflict: return nil
                    case .objectMissing: break
                    }
                }
                try store.invalidate(digest)
                return false
            }
        }
        if isChanged { forget(key, .replaced) }
        return isChanged
    }
}
