// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A place for a ``FileLock`` that is given once and from then on stays the same as long as the place does.
///
/// To look at it takes no lock: one load, and the count of a reference. Of this one type, as a generic one of
/// another module would be looked up at run time in each use, which takes 500 instructions.
package struct FileLockPlace: ~Copyable, Sendable {
    /// Of the lock, which is retained once for it; 0 while there is none.
    private let address = Atomic<UInt>(0)

    /// With no lock yet.
    package init() {}

    deinit {
        unsafe Self.reference(at: address.load(ordering: .acquiring))?.release()
    }

    /// The lock, if it was given.
    package var lock: FileLock? {
        unsafe Self.reference(at: address.load(ordering: .acquiring))?.takeUnretainedValue()
    }

    /// Puts `lock` here, unless there is one; the one that is here then.
    package func settle(_ lock: FileLock) -> FileLock {
        let reference = unsafe Unmanaged.passRetained(lock)
        let (isSettled, present) = address.compareExchange(
            expected: 0,
            desired: UInt(bitPattern: unsafe reference.toOpaque()),
            ordering: .acquiringAndReleasing
        )
        if isSettled { return lock }
        unsafe reference.release()
        return unsafe Self.reference(at: present)?.takeUnretainedValue() ?? lock
    }

    @unsafe
    private static func reference(at address: UInt) -> Unmanaged<FileLock>? {
        unsafe UnsafeRawPointer(bitPattern: address).map { unsafe Unmanaged.fromOpaque($0) }
    }
}
