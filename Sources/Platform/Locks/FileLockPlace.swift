// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A place for a ``FileLock`` that is given once and from then on stays the same as long as the place does.
///
/// Using it counts no reference and takes no lock of its own: threads that share a lock file do not take a cache
/// line from each other before they come to the lock.
package struct FileLockPlace: ~Copyable, Sendable {
    /// Of the lock, which is retained once for it; 0 while there is none.
    private let address = Atomic<UInt>(0)

    /// With no lock yet.
    package init() {}

    deinit {
        unsafe Self.reference(at: address.load(ordering: .acquiring))?.release()
    }

    /// Has the lock taken, as ``FileLock/lock(_:patience:)`` does; false where there is none yet.
    package func lock(_ mode: LockMode, patience: Duration) throws(Errno) -> Bool {
        guard let reference = unsafe Self.reference(at: address.load(ordering: .acquiring)) else {
            return false
        }
        let result = unsafe reference._withUnsafeGuaranteedRef { lock in
            Result { () throws(Errno) in try lock.lock(mode, patience: patience) }
        }
        try result.get()
        return true
    }

    /// Gives back what ``lock(_:patience:)`` got.
    package func unlock(_ mode: LockMode) {
        unsafe Self.reference(at: address.load(ordering: .acquiring))?._withUnsafeGuaranteedRef {
            $0.unlock(mode)
        }
    }

    /// Puts a lock here, unless there is one already.
    package func settle(_ lock: FileLock) {
        let reference = unsafe Unmanaged.passRetained(lock)
        let isSettled = address.compareExchange(
            expected: 0,
            desired: UInt(bitPattern: unsafe reference.toOpaque()),
            ordering: .acquiringAndReleasing
        ).exchanged
        if !isSettled { unsafe reference.release() }
    }

    @unsafe
    private static func reference(at address: UInt) -> Unmanaged<FileLock>? {
        unsafe UnsafeRawPointer(bitPattern: address).map { unsafe Unmanaged.fromOpaque($0) }
    }
}
