// SPDX-License-Identifier: Apache-2.0

package import CacheStore

extension SharedCache {
    /// The lock that a caller holds while it computes the value of `key`; opens nothing yet.
    package func flightLock(forKey key: String) throws(CacheError) -> FlightLock {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) in FlightLock(of: digest, in: store.directory) }
    }

    /// Tries to get the lock; never waits.
    ///
    /// A caller that gets it looks once more whether the value is there. It releases the lock if it is, or once
    /// it has stored the value.
    ///
    /// - Throws: ``CacheError`` if the lock's file can't be created: no space, no permission, a read-only file
    ///   system, a closed cache. The caller can compute anyway.
    package func attempt(_ lock: FlightLock) throws(CacheError) -> FlightLock.Attempt {
        try withStore { (_, _) throws(CacheError) in try lock.attempt() }
    }

    /// Counts an event of computing, in this module or outside of it.
    package func count(_ event: StoreCounters.Event) {
        counters.add(event)
    }
}
