// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// The possibly outdated address of the elements of an ``AlignedArray``, for a thread that prefetches them without its
/// lock.
///
/// It is used only for prefetching, so an outdated address costs nothing but time.
package struct ArrayHint: ~Copyable, Sendable {
    /// The address of the first element, a multiple of 128, with the binary logarithm of the number of elements in the
    /// low 7 bits.
    ///
    /// 0 if there are no elements.
    private let word = Atomic<UInt>(0)

    package init() {}

    /// Records the current address of `array`, whose number of elements is a power of two.
    package func follow<Element: Sendable>(_ array: borrowing AlignedArray<Element>) {
        let count = array.count
        let address = unsafe UInt(bitPattern: array.base)
        word.store(count == 0 ? 0 : address | UInt(count.trailingZeroBitCount), ordering: .relaxed)
    }

    /// Prefetches the two cache lines of the element at `position`, which wraps around at the end, without waiting for them;
    /// each element takes 128 bytes.
    package func prefetch(_ position: Int) {
        let word = word.load(ordering: .relaxed)
        if word == 0 { return }
        let mask: UInt = 1 << (word & 127) &- 1
        let address = (word & ~127) + (UInt(bitPattern: position) & mask) * 128
        unsafe cplatform_prefetch(UnsafeRawPointer(bitPattern: address))
        unsafe cplatform_prefetch(UnsafeRawPointer(bitPattern: address + 64))
    }
}
