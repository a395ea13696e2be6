// SPDX-License-Identifier: Apache-2.0

import Glibc

extension FileDescriptor {
    /// Writes all of `bytes`; waits where the descriptor is non-blocking and takes nothing now.
    ///
    /// C: `write`, and `poll` for a non-blocking descriptor; never a signal where files may not grow so long (``FileSizeLimit``).
    ///
    /// - Parameter makeSpace: called with how many bytes are left where the disk or a quota is full; true: it may have
    ///   room now, and writing goes on where it stopped.
    package func writeAll(_ bytes: Span<UInt8>, makeSpace: (Int) -> Bool = { _ in false }) throws(Errno) {
        try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in
            var written = 0
            while written < buffer.count {
                try FileSizeLimit.admit(self, wasCutShort: written > 0)
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
                do throws(Errno) {
                    written += try unsafe writeSome(rest)
                } catch {
                    if error == .wouldBlock {
                        try Readiness.wait(forWriting: rawValue)
                    } else if !error.tellsOfFullDisk || !makeSpace(rest.count) {
                        throw error
                    }
                }
            }
        }
    }

    /// Writes some of `bytes`, at least one, and says how many.
    ///
    /// C: `write`.
    ///
    /// - Throws: ``Errno/wouldBlock`` from a non-blocking descriptor that takes nothing now.
    ///
    /// A pipe that poll(2) calls writable takes 4096 (PIPE_BUF) without making anybody wait.
    package func writeSome(_ bytes: Span<UInt8>) throws(Errno) -> Int {
        try FileSizeLimit.admit(self)
        return try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in try unsafe writeSome(buffer) }
    }

    /// One call of `write`.
    @unsafe
    @inline(__always)
    private func writeSome(_ buffer: UnsafeRawBufferPointer) throws(Errno) -> Int {
        try systemCall(.write, upTo: buffer.count) { count in
            unsafe Glibc.write(rawValue, buffer.baseAddress, count)
        }
    }

    /// Writes a few bytes at `offset` in one call, without moving the file's own.
    ///
    /// The corresponding C function is `pwrite`.
    ///
    /// - Returns: how many were written, fewer only where space ends in between.
    @discardableResult
    package func write(_ bytes: Span<UInt8>, at offset: Int = 0) throws(Errno) -> Int {
        try FileSizeLimit.admit(self, at: offset)
        return try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in
            try systemCall(.write, upTo: buffer.count) { count in
                unsafe pwrite(rawValue, buffer.baseAddress, count, offset)
            }
        }
    }

    /// Makes the file at least `byteCount` long and gives it all its blocks, so that writing there needs no
    /// more room.
    ///
    /// C: `posix_fallocate`, after what ``FileSizeLimit/check(_:)`` does.
    ///
    /// - Throws: ``Errno/noSpace``, ``Errno/fileTooLarge``.
    package func allocate(_ byteCount: Int) throws(Errno) {
        try FileSizeLimit.check(byteCount)
        try systemCallReturningError(.allocate) { posix_fallocate(rawValue, 0, byteCount) }
    }

    /// Cuts the file off after so many bytes.
    ///
    /// C: `ftruncate`.
    package func truncate(to byteCount: Int) throws(Errno) {
        try systemCall(.allocate) { ftruncate(rawValue, byteCount) }
    }
}

extension Errno {
    /// Whether the file system has no space left, or the user's quota of it has none.
    package var tellsOfFullDisk: Bool { self == .noSpace || self == .quotaExceeded }
}
