// SPDX-License-Identifier: Apache-2.0

public import CPlatform

/// A reference to an object that somebody else keeps alive.
///
/// To use it changes no count of references: threads that look at one object at the same time do not take its
/// cache line from each other.
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
}

/// About where something is, in 32 bits: to have it fetched into the cache before it is needed.
///
/// Right as long as it lies within 64 GiB of what ``Window`` has seen last; never used for more than
/// fetching, so that a wrong one costs time and nothing else.
@usableFromInline
package struct LocationHint: Sendable {
    /// The part of the addresses that the hints leave out.
    @usableFromInline
    package struct Window: Sendable {
        @usableFromInline var upper: UInt = 0

        package init() {}
    }

    /// Bits 4 to 35 of the address: allocations are aligned to 16 bytes.
    @usableFromInline package let rawValue: UInt32

    /// The place of `object`, which moves the window.
    package init(_ object: AnyObject, _ window: inout Window) {
        self.init(address: UInt(bitPattern: ObjectIdentifier(object)), &window)
    }

    /// The 16 bytes at or around `address`, which moves the window.
    package init(address: UInt, _ window: inout Window) {
        rawValue = UInt32(truncatingIfNeeded: address >> 4)
        window.upper = address & ~0xf_ffff_ffff
    }

    /// A place that nobody needs.
    @inlinable
    package init() {
        rawValue = 0
    }

    @inlinable
    func address(_ window: Window) -> UInt {
        window.upper | UInt(rawValue) << 4
    }

    /// Has the count of references there fetched, which is about to be changed, and the 16 bytes behind it, without
    /// waiting for them.
    @inlinable
    package func prefetchObject(_ window: Window) {
        let address = address(window)
        unsafe cplatform_prefetch_to_change(UnsafeRawPointer(bitPattern: address))
        // Objects begin at any multiple of 16, so that they may lie across the end of a cache line.
        unsafe cplatform_prefetch(UnsafeRawPointer(bitPattern: address &+ 31))
    }

    /// Has the 16 bytes there fetched, without waiting for them.
    @inlinable
    package func prefetch(_ window: Window) {
        unsafe cplatform_prefetch(UnsafeRawPointer(bitPattern: address(window)))
    }
}
