// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension CacheDirectory {
    /// Returns what a get of `key` would find on disk, and why.
    ///
    /// Does not count as an access, and reads no value: damage that does not change the value's length is not detected. Six
    /// system calls; if there is no entry and the directory keeps an event log, the log is read.
    ///
    /// - Parameter key: any non-empty string.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func explanation(forKey key: String) throws(CacheError) -> KeyExplanation {
        let digest = try cache.settledDigest(ofKey: key)
        let (explanation, now) = try withStore { (store, now) throws(CacheError) in
            (try store.explain(digest, now: now), now)
        }
        var removal: LoggedRemoval?
        if explanation == nil { removal = try removals(forKey: key, limit: 1)?.last }
        return KeyExplanation(
            state: explanation.map { KeyExplanation.State($0, at: now) } ?? .absent,
            entry: explanation.flatMap { found in
                found.stored.record.map { record in
                    CacheEntry(record, keyDigest: digest, key: key, accessed: found.accessed, now: now)
                }
            },
            keyDigest: digest,
            lastRemoval: removal,
            computedBy: try cache.computingProcess(forKey: key)
        )
    }

    /// Returns the removals that the directory's event log still contains, by all processes, the newest last; nil if there
    /// is no log.
    ///
    /// Expired values are logged when their space is reclaimed. Values that are overwritten are not logged.
    ///
    /// - Parameters:
    ///   - key: return only removals of this key.
    ///   - limit: return only this many of the newest removals.
    /// - Complexity: O(*n*) in the log's bytes; memory for about twice the result.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func removals(
        forKey key: String? = nil,
        limit: Int = .max
    ) throws(CacheError) -> [LoggedRemoval]? {
        guard limit >= 0 else {
            throw CacheError(.invalidArgument, "limit the removals: it can't be negative: use 0 or more")
        }
        let digest = try key.map { (key) throws(CacheError) in try cache.digest(ofKey: key) }
        return try withStore { (store, _) throws(CacheError) in
            var newest: [LoggedRemoval] = []
            let isThere = try EventLog.forEach(in: store.directory) { event in
                if digest ?? event.keyDigest == event.keyDigest {
                    var event = event
                    event.key = key ?? event.key
                    newest.append(event)
                    // Trimmed only at twice the limit, so that trimming costs O(1) per removal.
                    if newest.count / 2 > limit { newest.removeFirst(newest.count - limit) }
                }
            }
            return isThere ? Array(newest.suffix(limit)) : nil
        }
    }
}
