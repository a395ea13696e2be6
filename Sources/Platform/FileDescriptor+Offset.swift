// SPDX-License-Identifier: Apache-2.0

import Glibc

extension FileDescriptor {
    /// Reads at most `count` bytes from `offset` on, without moving the file's own.
    ///
    /// C: `pread`.
    package func read(_ count: Int, at offset: Int = 0) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(Errno) {
                initialized = try valueOrErrno { unsafe pread(rawValue, buffer.baseAddress, count, offset) }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
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
            try valueOrErrno { unsafe pwrite(rawValue, buffer.baseAddress, buffer.count, offset) }
        }
    }
}
