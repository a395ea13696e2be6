// SPDX-License-Identifier: Apache-2.0

public import CPlatform
import Synchronization

/// Tells this process from all that it was forked from: never 0, and always the same in one process.
///
/// What notes it and later finds another one has come into a child by fork(2): with it a share in locks that are the
/// parent's, and mutexes that threads of the parent may have held. Two loads, no system call.
@inlinable package var processGeneration: UInt64 { cplatform_process_generation() }

/// An object that each process has for itself: a child made by fork(2) makes its own.
///
/// What it has inherited is left as it is, for good: threads that are not there any more may have it locked. So this is
/// for what lives as long as the process.
package final class PerProcess<Value: AnyObject & Sendable>: Sendable {
    private final class Place: Sendable {
        let owner = processGeneration
        let value: Value
        /// That of a process forked from this one, or from one that was.
        let next = AtomicLazyReference<Place>()

        init(_ value: Value) {
            self.value = value
        }
    }

    private let first = AtomicLazyReference<Place>()
    private let make: @Sendable () -> Value

    /// With nothing made yet.
    package init(_ make: @escaping @Sendable () -> Value) {
        self.make = make
    }

    /// This process's own.
    package var value: Value {
        var place = first.load() ?? first.storeIfNil(Place(make()))
        while place.owner != processGeneration {
            place = place.next.load() ?? place.next.storeIfNil(Place(make()))
        }
        return place.value
    }
}
