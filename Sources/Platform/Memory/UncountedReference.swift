// SPDX-License-Identifier: Apache-2.0

public import CPlatform

/// A reference to an object that somebody else keeps alive.
///
/// Using it changes no reference count, so threads that look at one object at the same time do not take its cache
/// line from each other.
@safe
@usableFromInline
package struct UncountedReference<Object: AnyObject & Sendable>: Sendable {
    @usableFromInline let object: Unmanaged<Object>

    /// - Parameter object: must live as long as this is used.
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

    /// Has the first three cache lines of the object fetched without waiting for them; the first, which has the
    /// reference count, to be changed.
    @inlinable
    package func prefetch() {
        let address = unsafe UnsafeRawPointer(object.toOpaque())
        unsafe cplatform_prefetch_to_change(address)
        unsafe cplatform_prefetch(address + 64)
        unsafe cplatform_prefetch(address + 128)
    }
}
