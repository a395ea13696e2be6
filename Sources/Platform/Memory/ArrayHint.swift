// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// About where the elements of an ``AlignedArray`` are, for who does not hold its lock: to have one fetched into the
/// cache before it is needed.
///
/// Never used for more than fetching, so that one which is out of date costs time and nothing else.
package struct ArrayHint: ~Copyable, Sendable {
    /// The address of the first element, a multiple of 128, and in the bits below that the number of elements as a
    /// power of two; 0 for none.
    private let word = Atomic<UInt>(0)

    package init() {}

    /// Notes where `array`, of a power of two of elements, is now.
    package func follow<Element: Sendable>(_ array: borrowing AlignedArray<Element>) {
        let count = array.count
        let address = unsafe UInt(bitPattern: array.base)
        word.store(count == 0 ? 0 : address | UInt(count.trailingZeroBitCount), ordering: .relaxed)
    }

    /// Has the two cache lines of the element at `position` fetched, counted on beyond the end from the beginning,
    /// without waiting for them; each element takes 128 bytes.
    package func prefetch(_ position: Int) {
        let word = word.load(ordering: .relaxed)
        if word == 0 { return }
        let mask: UInt = 1 << (word & 127) &- 1
        let address = (word & ~127) + (UInt(bitPattern: position) & mask) * 128
        unsafe cplatform_prefetch(UnsafeRawPointer(bitPattern: address))
        unsafe cplatform_prefetch(UnsafeRawPointer(bitPattern: address + 64))
    }
}
