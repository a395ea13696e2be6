// SPDX-License-Identifier: Apache-2.0

package import CacheStore

extension SharedCache {
    /// What one needs who wants to compute the value of `key`, or to wait for who does; opens nothing yet.
    package func flightWait(forKey key: String) throws(CacheError) -> FlightWait {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(StoreError) in FlightWait(for: digest, in: store.directory) }
    }

    /// Tries to become the one who computes; never waits.
    ///
    /// Whoever gets the lock looks once more whether the value is there, and gives the lock back when it is, or
    /// is stored.
    ///
    /// - Throws: ``CacheError`` where the lock's file can't be made: without space or permission, on a
    ///   file system mounted for reading only, in a closed cache. Computing is possible all the same.
    package func attempt(_ wait: inout FlightWait) throws(CacheError) -> FlightWait.Outcome {
        try withStore { (_, _) throws(StoreError) in try wait.attempt() }
    }

    /// Counts what is done outside of this module.
    package func count(_ event: StoreCounters.Event) {
        counters.add(event)
    }
}
