// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What a process did with a store since it opened it.
package final class StoreCounters: Sendable {
    /// Something that is counted.
    package enum Event: Int, CaseIterable, Sendable {
        case hit, staleHit, miss, put, removal
        /// A record that did not parse.
        case corruptRecord
        /// An object whose bytes were not those that its record promises.
        case corruptObject
        /// A record whose object was gone, twice in a row.
        case dangling
        /// An access time that could not be set.
        case accessFailure
        /// Something damaged that a reader could not remove at once.
        case repairFailure
        /// A control file that could not be made or mapped.
        case controlFailure
        case memoryHit, publishFailure
    }

    private let counts = StoreCounters.makeCounts()

    private static func makeCounts() -> [Count] {
        Event.allCases.map { _ in Count() }
    }

    private final class Count: Sendable {
        let value = Atomic<Int>(0)
    }

    package init() {}

    package func add(_ event: Event) {
        counts[event.rawValue].value.add(1, ordering: .relaxed)
    }

    package subscript(event: Event) -> Int {
        counts[event.rawValue].value.load(ordering: .relaxed)
    }
}
