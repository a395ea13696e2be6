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
        let owner: UInt64
        let value: Value

        init(owner: UInt64, _ value: Value) {
            self.owner = owner
            self.value = value
        }
    }

    /// Of the ``Place``, which is retained once for it; 0 while there is none.
    private let address = Atomic<UInt>(0)
    private let make: @Sendable () -> Value

    /// With nothing made yet.
    package init(_ make: @escaping @Sendable () -> Value) {
        self.make = make
    }

    /// This process's own.
    package var value: Value {
        let owner = processGeneration
        while true {
            let seen = address.load(ordering: .acquiring)
            if let place = unsafe Self.place(at: seen), place.owner == owner { return place.value }
            let place = unsafe Unmanaged.passRetained(Place(owner: owner, make()))
            let isOurs = address.compareExchange(
                expected: seen,
                desired: UInt(bitPattern: unsafe place.toOpaque()),
                ordering: .acquiringAndReleasing
            ).exchanged
            if !isOurs { unsafe place.release() }
        }
    }

    @unsafe
    private static func place(at address: UInt) -> Place? {
        unsafe UnsafeRawPointer(bitPattern: address).map {
            unsafe Unmanaged<Place>.fromOpaque($0).takeUnretainedValue()
        }
    }
}
