// SPDX-License-Identifier: Apache-2.0

package import CacheStore

extension SharedCache {
    /// Returns the lock that a caller must hold while it computes the value of `key`; does not open its file yet.
    package func flightLock(forKey key: String) throws(CacheError) -> FlightLock {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) in FlightLock(of: digest, in: store.directory) }
    }

    /// Tries to acquire the lock without waiting.
    ///
    /// A caller that acquires the lock looks up the value again. If a value is stored now, the caller releases the lock
    /// at once; otherwise it does so after it has stored the value.
    ///
    /// - Throws: ``CacheError`` if the lock's file can't be created: no space, no permission, a read-only file system, a
    ///   closed cache. The caller can compute the value anyway.
    package func attempt(_ lock: FlightLock) throws(CacheError) -> FlightLock.Attempt {
        try withStore { (_, _) throws(CacheError) in try lock.attempt() }
    }

    /// Counts an event of a computation, inside or outside of this module.
    package func count(_ event: StoreCounters.Event) {
        counters.add(event)
    }

    /// Returns the process that is computing the value of `key`, according to its lock's file; nil if none is.
    ///
    /// Takes three system calls.
    func computingProcess(forKey key: String) throws(CacheError) -> ComputingProcess? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) in
            try ComputingProcess.current(of: digest, in: store.directory)
        }
    }
}
