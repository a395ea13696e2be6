// SPDX-License-Identifier: Apache-2.0

package import CacheStore

extension SharedCache {
    /// The lock of whoever computes the value of `key`; opens nothing yet.
    package func flightLock(forKey key: String) throws(CacheError) -> FlightLock {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(StoreError) in FlightLock(of: digest, in: store.directory) }
    }

    /// Tries to get the lock; never waits.
    ///
    /// Whoever gets it looks once more whether the value is there, and releases it if it is, or is stored.
    ///
    /// - Throws: ``CacheError`` if the lock's file can't be made: without space or permission, on a file system
    ///   mounted for reading only, in a closed cache. Computing is possible all the same.
    package func attempt(_ lock: FlightLock) throws(CacheError) -> FlightLock.Attempt {
        try withStore { (_, _) throws(StoreError) in try lock.attempt() }
    }

    /// Counts what is done outside of this module.
    package func count(_ event: StoreCounters.Event) {
        counters.add(event)
    }
}
