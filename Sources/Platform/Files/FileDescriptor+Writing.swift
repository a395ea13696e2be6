// SPDX-License-Identifier: Apache-2.0

import Glibc

extension FileDescriptor {
    /// Writes all of `bytes`; waits if the descriptor is non-blocking and not writable.
    ///
    /// C: `write`, and `poll` for a non-blocking descriptor. A file size limit never causes a signal (``FileSizeLimit``).
    ///
    /// - Parameter makeSpace: Called with the number of remaining bytes if the disk or a quota is full. If it returns
    ///   true, which means that space may now be available, writing continues.
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
                    } else if !error.isDiskFull || !makeSpace(rest.count) {
                        throw error
                    }
                }
            }
        }
    }

    /// Writes some of `bytes`, at least one, and returns how many.
    ///
    /// C: `write`.
    ///
    /// - Throws: ``Errno/wouldBlock`` from a non-blocking descriptor that is not writable now.
    ///
    /// A pipe that poll(2) reports as writable takes 4096 bytes (PIPE_BUF) without blocking.
    package func writeSome(_ bytes: Span<UInt8>) throws(Errno) -> Int {
        try FileSizeLimit.admit(self)
        return try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in try unsafe writeSome(buffer) }
    }

    /// Calls `write` once.
    @unsafe
    @inline(__always)
    private func writeSome(_ buffer: UnsafeRawBufferPointer) throws(Errno) -> Int {
        try systemCall(.write, upTo: buffer.count) { count in
            unsafe Glibc.write(rawValue, buffer.baseAddress, count)
        }
    }

    /// Writes a few bytes at `offset` in one call, without moving the file's offset.
    ///
    /// C: `pwrite`.
    ///
    /// - Returns: The number of bytes written, which is less than requested only if space runs out during the call.
    @discardableResult
    package func write(_ bytes: Span<UInt8>, at offset: Int = 0) throws(Errno) -> Int {
        try FileSizeLimit.admit(self, at: offset)
        return try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in
            try systemCall(.write, upTo: buffer.count) { count in
                unsafe pwrite(rawValue, buffer.baseAddress, count, offset)
            }
        }
    }

    /// Makes the file at least `byteCount` long and allocates all its blocks, so that writing there needs no more space.
    ///
    /// C: `posix_fallocate`, after the calls of ``FileSizeLimit/check(_:)``.
    ///
    /// - Throws: ``Errno/noSpace``, ``Errno/fileTooLarge``.
    package func allocate(_ byteCount: Int) throws(Errno) {
        try FileSizeLimit.check(byteCount)
        try systemCallReturningError(.allocate) { posix_fallocate(rawValue, 0, byteCount) }
    }

    /// Truncates the file to the given number of bytes.
    ///
    /// C: `ftruncate`.
    package func truncate(to byteCount: Int) throws(Errno) {
        try systemCall(.allocate) { ftruncate(rawValue, byteCount) }
    }
}

extension Errno {
    /// Whether the file system, or the user's quota of it, is full.
    package var isDiskFull: Bool { self == .noSpace || self == .quotaExceeded }
}
