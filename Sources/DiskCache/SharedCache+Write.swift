// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

extension SharedCache {
    /// Stores `data` under `key`, replacing a value that is there.
    ///
    /// Once it has returned, every get that starts afterwards in any process sees the value; with
    /// ``CacheConfiguration/Writing/behind`` only this process does at first. Equal bytes under several keys
    /// are stored once. Takes eleven system calls if the bytes and the key are known already, fourteen for new
    /// bytes, and one more for a new key; after eight puts that were all new, thirteen for the next new one. When it
    /// writes new bytes, it takes one more every half second, to see whether the directory has other limits, and one if
    /// there is a minimum of free space.
    ///
    /// - Parameters:
    ///   - data: the value.
    ///   - key: any string but the empty one.
    ///   - options: until when it is valid, and what else to keep.
    /// - Throws: ``CacheError``; the previous value is then still there, unless it was so large that it had to be removed to make
    ///   room for the new one (<doc:SharingBetweenProcesses#How-limits-hold>).
    public func put(
        _ data: Data,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) {
        if waitsForNobody(options) {
            let write = try pendingWrite(data, forKey: key, options)
            // What is larger than the whole queue takes the other way.
            if writeBehind.put(write) { return }
        }
        try putThrough(data, forKey: key, options)
    }

    /// Whether a put with these options may return before the value is on disk; one of memory alone never is there.
    func waitsForNobody(_ options: PutOptions) -> Bool {
        (options.writing ?? configuration.writing) == .behind && !keepsInMemoryAlone(options)
    }

    /// Whether a value with these options is never on disk.
    func keepsInMemoryAlone(_ options: PutOptions) -> Bool {
        (options.keeps ?? configuration.memory.keeps) == .memoryOnly
    }

    /// Stores `data` on disk, and in memory, if there is any.
    func putThrough(_ data: Data, forKey key: String, _ options: PutOptions) throws(CacheError) {
        let held = try withIndicesFromZero(data)
        if keepsInMemoryAlone(options) {
            _ = try keepInMemory(held, forKey: key, codec, options, isComputed: false)
            return
        }
        let cost = memoryCost(options) ?? data.count
        try putThrough(data, forKey: key, options) {
            HeldValue(held, key: key, in: space, record: $0, cost: cost)
        }
    }

    /// What a value that is put with these options costs in memory; nil: what its bytes or its codec say.
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

    /// The same bytes, as a get from disk gives them: a slice counts on from where it was cut.
    func withIndicesFromZero(_ data: Data) throws(CacheError) -> Data {
        if data.startIndex == 0 { return data }
        return try describing("copy \(data.count) bytes for", path) { () throws(Errno) in
            try Data(copying: data.span)
        }
    }

    /// Stores `data` on disk, and in memory, if there is any, in the form that `hold` makes of the record; or on disk
    /// alone, if the options say so.
    private func putThrough(
        _ data: Data,
        forKey key: String,
        _ options: PutOptions,
        _ hold: (Record) -> HeldItem
    ) throws(CacheError) {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        // Asked for once: each time costs `Data` 200 instructions.
        let bytes = data.span
        let record = try record(of: Content(of: bytes), key: key, options, now: now)
        // Not dropped: until this one is on disk, and if it fails, the earlier one is what gets must see.
        writeBehind.settle(digest)
        try publish(bytes, forKey: key, digest, record, options, RoomTerms(), hold)
    }

    /// Leaves a value on disk, and in memory too, if the options say so.
    ///
    /// - Parameter hold: makes what memory keeps of the record.
    func publish(
        _ bytes: Span<UInt8>,
        forKey key: String,
        _ digest: Digest,
        _ record: Record,
        _ options: PutOptions,
        _ room: RoomTerms,
        _ hold: (Record) -> HeldItem
    ) throws(CacheError) {
        let terms = configuration.memory.terms(of: options)
        try core.publish(bytes, digest, record, room, terms, hold)
        if terms.keeps == .diskOnly { forget(key, .replaced) }
    }

    /// Stores `data` unless there is a value for `key` already.
    ///
    /// If any number of processes do this at once, exactly one of them stores.
    ///
    /// - Returns: whether it was stored.
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
    /// - Returns: false if there was no value on disk, or it had expired. One that is still available as a stale value
    ///   has expired, and is removed; so is one in memory alone, of which this tells nothing.
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

    /// Counts as an access of `key`, which also extends a sliding expiration.
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

    /// Gives the value of `key` another expiration, and keeps everything else that was stored with it.
    ///
    /// With `.expired` and a stale period it expires softly: a get misses, and whoever accepts stale values still gets it.
    /// With any other expiration this counts as an access, so `onAccess` applies at once.
    ///
    /// - Parameters:
    ///   - expires: the new expiration.
    ///   - onAccess: what accesses do to it, in place of what they did to the old one.
    ///   - staleFor: the new stale period (``PutOptions/staleFor``); nil leaves it as it is.
    ///   - key: any string but the empty one.
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
                    case .published: return true
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
