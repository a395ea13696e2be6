// SPDX-License-Identifier: Apache-2.0

/// Elements side by side from a multiple of 128 bytes on, with one owner.
///
/// So an element whose stride is 64 fills one cache line. As there is one owner, reading or changing an element
/// counts no references and looks for no other owner, as `Array` must.
@safe
@usableFromInline
package struct AlignedArray<Element: Sendable>: ~Copyable, Sendable {
    @usableFromInline nonisolated(unsafe) var base: UnsafeMutablePointer<Element>
    @usableFromInline var number: Int
    @usableFromInline var capacity: Int

    /// `count` elements that are all `element`; one allocation.
    @inlinable
    package init(repeating element: Element, count: Int) {
        unsafe base = Self.allocate(count)
        unsafe base.initialize(repeating: element, count: count)
        capacity = count
        number = count
    }

    /// None yet.
    @inlinable
    package init() {
        unsafe base = Self.allocate(0)
        capacity = 0
        number = 0
    }

    @inlinable
    deinit {
        unsafe base.deinitialize(count: number)
        unsafe UnsafeMutableRawPointer(base).deallocate()
    }

    /// Number of elements.
    @inlinable package var count: Int { number }

    /// The element at a position below ``count``.
    @inlinable
    package subscript(position: Int) -> Element {
        unsafeAddress {
            precondition(position >= 0 && position < number, "outside of the array")
            return unsafe UnsafePointer(base + position)
        }
        unsafeMutableAddress {
            precondition(position >= 0 && position < number, "outside of the array")
            return unsafe base + position
        }
    }

    /// The same element, without a look whether there is such a position: the caller knows.
    @unsafe
    @inlinable
    package subscript(unchecked position: Int) -> Element {
        unsafeAddress { unsafe UnsafePointer(base + position) }
        unsafeMutableAddress { unsafe base + position }
    }

    /// Adds an element at the end.
    ///
    /// - Complexity: O(1) on the average; where there is no room left, all move to twice as much.
    @inlinable
    package mutating func append(_ element: Element) {
        if number == capacity { grow() }
        unsafe (base + number).initialize(to: element)
        number += 1
    }

    @usableFromInline
    mutating func grow() {
        let larger = max(8, capacity * 2)
        let moved = unsafe Self.allocate(larger)
        unsafe moved.moveInitialize(from: base, count: number)
        unsafe UnsafeMutableRawPointer(base).deallocate()
        unsafe base = moved
        capacity = larger
    }

    @usableFromInline
    static func allocate(_ count: Int) -> UnsafeMutablePointer<Element> {
        let bytes = max(count, 1) * MemoryLayout<Element>.stride
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 128)
        return unsafe memory.bindMemory(to: Element.self, capacity: max(count, 1))
    }
}
