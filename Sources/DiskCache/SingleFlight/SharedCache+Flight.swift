// SPDX-License-Identifier: Apache-2.0

package import CacheStore

extension SharedCache {
    /// Tries to become the one who computes the value of `key`, among all threads and processes.
    ///
    /// Never waits. Whoever gets the lock looks once more whether the value is there, and gives the lock
    /// back when it is, or is stored.
    ///
    /// - Throws: ``CacheError`` where the lock's file can't be made: without space or permission, on a
    ///   file system mounted for reading only, in a closed cache. Computing is possible all the same.
    package func attemptFlight(forKey key: String) throws(CacheError) -> FlightLock.Attempt {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(StoreError) in try FlightLock.attempt(digest, in: store) }
    }
}
