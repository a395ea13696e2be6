// SPDX-License-Identifier: Apache-2.0

import CPlatform
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

    /// Hands the file's bytes to `body`, a chunk of ``chunkSize`` at a time, without what lies in holes as large as that.
    ///
    /// C: `lseek(SEEK_DATA)`, `pread`.
    package func forEachChunkOfData(_ body: (Span<UInt8>) -> Void) throws(Errno) {
        var offset = 0
        while true {
            do throws(Errno) {
                offset = try valueOrErrno { lseek(rawValue, offset, cplatform_SEEK_DATA) }
            } catch {
                // Nothing but a hole, or the end.
                if error == .noDeviceOrAddress { return }
                throw error
            }
            let chunk = try read(Self.chunkSize, at: offset)
            if chunk.isEmpty { return }
            body(chunk.span)
            offset += chunk.count
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
            try valueOrErrno { unsafe pwrite(rawValue, buffer.baseAddress, buffer.count, offset) }
        }
    }
}
