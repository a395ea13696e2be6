// SPDX-License-Identifier: Apache-2.0

package import CacheStore

extension SharedCache {
    /// What one needs who wants to compute the value of `key`, or to wait for who does; opens nothing yet.
    package func flightWait(forKey key: String) throws(CacheError) -> FlightWait {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(StoreError) in FlightWait(for: digest, in: store) }
    }

    /// Tries to become the one who computes; never waits.
    ///
    /// - Throws: as ``attemptFlight(forKey:)``.
    package func attempt(_ wait: inout FlightWait) throws(CacheError) -> FlightWait.Outcome {
        try withStore { (_, _) throws(StoreError) in try wait.attempt() }
    }
}
