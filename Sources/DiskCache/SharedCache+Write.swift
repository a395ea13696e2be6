// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

extension SharedCache {
    /// Stores `data` under `key`, replacing what was there.
    ///
    /// Once it has returned, every get that starts afterwards in any process sees the value; with
    /// ``CacheConfiguration/Writing/behind``, in this process. Equal bytes under several keys are stored once. Seven system
    /// calls where the bytes and the key are known already, ten for new bytes, three more for a new key; after
    /// eight puts that were all new, eleven for the next such. (On kernels before 6.13, two more each.) Where new bytes are written,
    /// one more each half second, to see whether the directory has other limits; and one where it has a minimum of free
    /// space.
    ///
    /// - Parameters:
    ///   - data: the value.
    ///   - key: any string but an empty one.
    ///   - options: until when it is good, and what else to keep.
    /// - Throws: ``CacheError``; what was stored before is then still there.
    public func put(
        _ data: Data,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) {
        if (options.writing ?? configuration.writing) == .behind {
            let write = try pendingWrite(data, forKey: key, options)
            // What is larger than the whole queue takes the other way.
            if writeBehind.put(write) { return }
        }
        try putThrough(data, forKey: key, options)
    }

    /// Stores `data` on disk, and in memory, if there is any.
    func putThrough(
        _ data: Data,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms = RoomTerms()
    ) throws(CacheError) {
        let held = try withIndicesFromZero(data)
        try putThrough(data, forKey: key, options, room) {
            HeldValue(held, key: key, record: $0, cost: data.count)
        }
    }

    func pendingWrite(_ data: Data, forKey key: String, _ options: PutOptions) throws(CacheError)
        -> PendingWrite
    {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        let unknown = Content(digest: digest, length: data.count, checksum: 0)
        let draft = try record(of: unknown, key: key, options, now: now)
        return PendingWrite(try withIndicesFromZero(data), forKey: key, digest, draft: draft)
    }

    /// The same bytes, as a get from disk gives them: a slice counts on from where it was cut.
    private func withIndicesFromZero(_ data: Data) throws(CacheError) -> Data {
        data.startIndex == 0 ? data : try copy(of: data.span)
    }

    private func copy(of bytes: Span<UInt8>) throws(CacheError) -> Data {
        do throws(Errno) {
            return try Data(copying: bytes)
        } catch {
            throw CacheError(StoreError(errno: error, "copy \(bytes.count) bytes for", path: path))
        }
    }

    /// Stores `data` on disk, and in memory, if there is any, in the form that `hold` makes of the record.
    func putThrough(
        _ data: Data,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms = RoomTerms(),
        _ hold: (Record) -> HeldItem
    ) throws(CacheError) {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        // Asked for once: each time costs `Data` 200 instructions.
        let bytes = data.span
        let record = try record(of: Content(of: bytes), key: key, options, now: now)
        // Not dropped: until this one is on disk, and if it fails, the earlier one is what gets must see.
        writeBehind.settle(digest)
        try core.publish(bytes, digest, record, room, hold)
    }

    /// Stores `data` unless there is a value for `key` already.
    ///
    /// True: it was stored.
    ///
    /// Of any number of processes that do this at once exactly one stores.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func putIfAbsent(
        _ data: Data,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        let content = Content(of: data.span)
        var backoff = ConflictBackoff()
        while true {
            let observed = try withStore { (store, now) throws(StoreError) in
                try store.observePresence(of: digest, now: now)
            }
            if observed.isPresent { return false }
            let record = try record(of: content, key: key, options, now: now)
            let isStored = try withStore { (store, _) throws(StoreError) in
                try store.put(data.span, for: digest, record, ifStill: observed.stored).isPublished
            }
            if isStored {
                core.memory?.remove(key, cause: .replaced)
                return true
            }
            backoff.pause()
        }
    }

    /// Replaces the value of `key` by what `transform` makes of it, atomically across processes.
    ///
    /// No lock is held while `transform` runs: where another process has changed the value meanwhile, it
    /// is called again with the new one. So it must have no side effects.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - options: until when it is good, and what else to keep.
    ///   - transform: gets the present value, nil for a miss; gives the new one, nil to remove it.
    /// - Returns: the new value.
    /// - Throws: what `transform` throws, and ``CacheError``.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions = PutOptions(),
        _ transform: (Data?) throws -> Data?
    ) throws -> Data? {
        let digest = try settledDigest(ofKey: key)
        var backoff = ConflictBackoff()
        while true {
            let observed = try withStore { (store, now) throws(StoreError) in
                try store.observe(digest, now: now)
            }
            let value = try transform(observed.value)
            if try replace(observed.stored, with: value, digest, key, options) {
                core.memory?.remove(key, cause: value == nil ? .explicit : .replaced)
                return value
            }
            backoff.pause()
        }
    }

    private func replace(
        _ observed: StoredEntry?,
        with value: Data?,
        _ digest: Digest,
        _ key: String,
        _ options: PutOptions
    ) throws(CacheError) -> Bool {
        guard let value else {
            return try withStore { (store, _) throws(StoreError) in
                try store.remove(digest, ifStill: observed)
            }
        }
        let record = try record(of: Content(of: value.span), key: key, options, now: now)
        return try withStore { (store, _) throws(StoreError) in
            try store.put(value.span, for: digest, record, ifStill: observed).isPublished
        }
    }

    /// Stores content under its own digest, so that it can be had by `data(for:)` until it expires and a
    /// collection has removed it.
    ///
    /// It lives by the rules of any value: its key is the digest's hexadecimal digits. It is on disk when this
    /// returns, also where the cache is configured for ``CacheConfiguration/Writing/behind``.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func store(_ data: Data, expires: Expiration? = nil) throws(CacheError) -> ContentDigest {
        let digest = ContentDigest(of: data)
        try put(data, forKey: digest.description, options: PutOptions(expires: expires, writing: .through))
        return digest
    }

    /// Removes the value of `key`.
    ///
    /// False: there was none, or it had expired; what can still be given out as stale has expired, and is removed.
    /// Four system calls.
    ///
    /// The space of its bytes is reclaimed by the next collection.
    @discardableResult
    public func remove(forKey key: String) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        let name = configuration.keyNames == .stored ? key : nil
        let isRemoved = try withStore { (store, now) throws(StoreError) in
            try store.remove(digest, now: now, name: name)
        }
        core.memory?.remove(key, cause: .explicit)
        return isRemoved
    }

    /// Counts as an access of `key` now, which also prolongs a sliding expiration.
    ///
    /// False: a get would miss. Five system calls.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func touch(forKey key: String) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        return try withStore { (store, now) throws(StoreError) in
            guard try store.liveEntry(digest, now: now, allowingStale: false) != nil else { return false }
            return try store.touch(digest, now: now)
        }
    }

    /// Gives the value of `key` another expiration.
    ///
    /// False: a get would miss.
    ///
    /// What was stored with it is kept; `onAccess` replaces what accesses did to the old expiration.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func setExpiration(
        _ expires: Expiration,
        onAccess: Expiration.OnAccess = .keep,
        forKey key: String
    ) throws(CacheError) -> Bool {
        let digest = try settledDigest(ofKey: key)
        var backoff = ConflictBackoff()
        while true {
            let now = now
            let live = try withStore { (store, _) throws(StoreError) in
                try store.liveEntry(digest, now: now, allowingStale: false)
            }
            guard let live else {
                try withStore { (store, _) throws(StoreError) in try store.invalidate(digest) }
                return false
            }
            var record = live.record
            try apply(expires, onAccess, staleFor: record.staleFor, to: &record, now: now)
            let changed = record
            let outcome = try withStore { (store, _) throws(StoreError) in
                try store.rewrite(changed, for: digest, ifStill: live.stored, now: now)
            }
            switch outcome {
            case .published:
                core.memory?.remove(key, cause: .replaced)
                return true
            case .objectMissing:
                try withStore { (store, _) throws(StoreError) in try store.invalidate(digest) }
                return false
            case .conflict: backoff.pause()
            }
        }
    }
}

/// Pauses between attempts of writers that keep changing the same key under each other: the first is
/// repeated at once, as a conflict means that somebody else got on.
private struct ConflictBackoff {
    private var backoff: Backoff?
    private var generator = SystemRandomNumberGenerator()

    mutating func pause() {
        if backoff != nil, let pause = backoff?.next(using: &generator) { sleepThread(for: pause) }
        if backoff == nil { backoff = Backoff() }
    }
}
