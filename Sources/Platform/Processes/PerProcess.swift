// SPDX-License-Identifier: Apache-2.0

public import CPlatform
import Synchronization

/// An identifier that distinguishes this process from the processes that it was forked from: never 0, and constant within
/// a process.
///
/// An object that stores the identifier and later finds a different value was copied into a child by fork(2). The child
/// shares locks that belong to the parent, and inherits mutexes that threads of the parent may have held. Reading the
/// identifier costs two loads and no system call.
@inlinable package var processGeneration: UInt64 { cplatform_process_generation() }

/// An object that exists once per process: a child made by fork(2) creates a separate one.
///
/// The child leaves the inherited object unchanged and never frees it, because threads that do not exist in the child may
/// have locked it. So this is for objects that live as long as the process.
package final class PerProcess<Value: AnyObject & Sendable>: Sendable {
    private final class Place: Sendable {
        let owner = processGeneration
        let value: Value
        /// The object of a process forked from the owner or from one of the owner's descendants.
        let next = AtomicLazyReference<Place>()

        init(_ value: Value) {
            self.value = value
        }
    }

    private let first = AtomicLazyReference<Place>()
    private let make: @Sendable () -> Value

    /// Creates a holder that makes its object on first use.
    package init(_ make: @escaping @Sendable () -> Value) {
        self.make = make
    }

    /// This process's object.
    package var value: Value {
        var place = first.load() ?? first.storeIfNil(Place(make()))
        while place.owner != processGeneration {
            place = place.next.load() ?? place.next.storeIfNil(Place(make()))
        }
        return place.value
    }
}
