// SPDX-License-Identifier: Apache-2.0

public import CPlatform

/// A reference to an object that other code keeps alive.
///
/// Using the reference does not change the object's reference count, so threads that use one object at the same time do
/// not contend for that cache line.
@safe
@usableFromInline
package struct UncountedReference<Object: AnyObject & Sendable>: Sendable {
    @usableFromInline let object: Unmanaged<Object>

    /// Creates a reference to `object`.
    ///
    /// - Parameter object: The object, which must outlive this reference.
    @unsafe
    @inlinable
    package init(_ object: Object) {
        unsafe self.object = Unmanaged.passUnretained(object)
    }

    /// Runs `body` with the object.
    @inlinable
    package func use<Result>(_ body: (Object) -> Result) -> Result {
        unsafe object._withUnsafeGuaranteedRef(body)
    }

    /// Prefetches the first three cache lines of the object without waiting for them.
    ///
    /// The first line, which contains the reference count, is prefetched for writing.
    @inlinable
    package func prefetch() {
        let address = unsafe UnsafeRawPointer(object.toOpaque())
        unsafe cplatform_prefetch_to_change(address)
        unsafe cplatform_prefetch(address + 64)
        unsafe cplatform_prefetch(address + 128)
    }
}
