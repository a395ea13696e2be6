// SPDX-License-Identifier: Apache-2.0

/// A fixed number of elements in contiguous memory, starting at a multiple of 128 bytes, with one owner.
///
/// An element whose stride is 64 fills one cache line. There is only one owner, so accessing an element neither counts
/// references nor checks for uniqueness, as `Array` must.
@safe
@usableFromInline
package struct AlignedArray<Element: Sendable>: ~Copyable, Sendable {
    @usableFromInline nonisolated(unsafe) let base: UnsafeMutablePointer<Element>
    /// The number of elements.
    @usableFromInline package let count: Int

    /// Creates `count` copies of `element`, with one allocation.
    @inlinable
    package init(repeating element: Element, count: Int) {
        unsafe base = Self.allocate(count)
        unsafe base.initialize(repeating: element, count: count)
        self.count = count
    }

    /// Creates an empty array.
    @inlinable
    package init() {
        unsafe base = Self.allocate(0)
        count = 0
    }

    @inlinable
    deinit {
        unsafe base.deinitialize(count: count)
        unsafe UnsafeMutableRawPointer(base).deallocate()
    }

    /// The element at a position below ``count``.
    @inlinable
    package subscript(position: Int) -> Element {
        unsafeAddress {
            precondition(position >= 0 && position < count, "outside of the array")
            return unsafe UnsafePointer(base + position)
        }
        unsafeMutableAddress {
            precondition(position >= 0 && position < count, "outside of the array")
            return unsafe base + position
        }
    }

    @usableFromInline
    static func allocate(_ count: Int) -> UnsafeMutablePointer<Element> {
        let bytes = max(count, 1) * MemoryLayout<Element>.stride
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 128)
        return unsafe memory.bindMemory(to: Element.self, capacity: max(count, 1))
    }
}
