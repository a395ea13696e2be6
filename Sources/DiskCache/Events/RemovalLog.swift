// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials

extension LoggedRemoval {
    /// When the key was removed.
    public var time: Date { moment.date }
}

extension SharedCache {
    /// Removals by any process, as far back as the directory's event log goes, the newest last; nil if there is
    /// no log.
    ///
    /// Expired values are logged when their space is reclaimed. Values that are overwritten are not logged.
    ///
    /// - Parameters:
    ///   - key: return only removals of this key.
    ///   - limit: return only this many of the newest.
    /// - Complexity: O(*n*) in the log's bytes; memory for about twice what is returned.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func removals(
        forKey key: String? = nil,
        limit: Int = .max
    ) throws(CacheError) -> [LoggedRemoval]? {
        guard limit >= 0 else {
            throw CacheError(.invalidArgument, "limit the removals: it can't be negative: use 0 or more")
        }
        let digest = try key.map { (key) throws(CacheError) in try self.digest(ofKey: key) }
        return try withStore { (store, _) throws(CacheError) in
            var newest: [LoggedRemoval] = []
            let isThere = try EventLog.forEach(in: store.directory) { event in
                if digest ?? event.keyDigest == event.keyDigest {
                    var event = event
                    event.key = key ?? event.key
                    newest.append(event)
                    // Only when there are twice as many, so that it costs O(1) a removal.
                    if newest.count / 2 > limit { newest.removeFirst(newest.count - limit) }
                }
            }
            return isThere ? Array(newest.suffix(limit)) : nil
        }
    }
}
