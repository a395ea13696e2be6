// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A slot for a ``FileLock`` that is set at most once and never changes afterwards.
///
/// Reading the slot changes no reference count and takes no lock, so threads that share a lock file do not contend for a
/// cache line before they reach the file lock.
package struct FileLockPlace: ~Copyable, Sendable {
    /// The address of the lock, to which the slot owns one reference; 0 if no lock is set.
    private let address = Atomic<UInt>(0)

    /// Creates an empty slot.
    package init() {}

    deinit {
        unsafe Self.reference(at: address.load(ordering: .acquiring))?.release()
    }

    /// Takes the lock as ``FileLock/lock(_:patience:)`` does; returns false if no lock is set.
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

    /// Releases the lock acquired by ``lock(_:patience:)``.
    package func unlock(_ mode: LockMode) {
        unsafe Self.reference(at: address.load(ordering: .acquiring))?._withUnsafeGuaranteedRef {
            $0.unlock(mode)
        }
    }

    /// Sets the lock, unless one is set already.
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
