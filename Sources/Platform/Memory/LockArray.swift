// SPDX-License-Identifier: Apache-2.0

/// Values that are each protected by a separate lock, and share no cache lines with each other.
///
/// Unlike in an array of ``Locked/Box``, locking a value changes no reference count.
@safe
@usableFromInline
package struct LockArray<Value: ~Copyable>: ~Copyable, Sendable {
    @usableFromInline nonisolated(unsafe) let base: UnsafeMutableRawPointer
    /// The number of values.
    @usableFromInline package let count: Int

    /// Creates `count` values by calling `make`.
    package init(count: Int, _ make: () -> sending Value) {
        self.count = count
        unsafe base = UnsafeMutableRawPointer.allocate(byteCount: count * Self.stride, alignment: 128)
        for position in 0..<count {
            unsafe (base + position * Self.stride).bindMemory(to: LockedCell<Value>.self, capacity: 1)
                .initialize(to: LockedCell(make()))
        }
    }

    deinit {
        for position in 0..<count { unsafe place(position).deinitialize(count: 1) }
        unsafe base.deallocate()
    }

    @usableFromInline static var stride: Int { (MemoryLayout<LockedCell<Value>>.size + 127) & ~127 }

    @unsafe
    @inlinable
    func place(_ position: Int) -> UnsafeMutablePointer<LockedCell<Value>> {
        precondition(position >= 0 && position < count, "outside of the array")
        return unsafe (base + position * Self.stride).assumingMemoryBound(to: LockedCell<Value>.self)
    }

    /// Runs `body` with exclusive access to the value at `position`.
    @inlinable
    package func withLock<Result: ~Copyable, Failure: Error>(
        at position: Int,
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe LockedCell.withLock(place(position), body)
    }
}
