// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// Waiting for several pipes at once.
package enum Readiness {
    /// Those of `descriptors` that have something to read or have come to their end, after at most `limit`.
    ///
    /// A signal ends the wait early, with none.
    ///
    /// C: `poll`.
    ///
    /// - Parameter output: one to wait for until it can be written to, or nobody reads it any more.
    package static func wait(
        for descriptors: [Int32],
        orWriting output: Int32? = nil,
        limit: Duration
    ) throws(Errno) -> [Int32] {
        let milliseconds = Int32(clamping: max(0, limit.saturatingNanoseconds) / 1_000_000)
        var requests = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        if let output { requests.append(pollfd(fd: output, events: Int16(POLLOUT), revents: 0)) }
        let count = unsafe requests.withUnsafeMutableBufferPointer { buffer in
            unsafe poll(buffer.baseAddress, nfds_t(buffer.count), milliseconds)
        }
        if count == -1 {
            let error = Errno.current
            guard error == .interrupted else { throw error }
            return []
        }
        return requests.filter { $0.revents != 0 }.map(\.fd)
    }
}

extension FileDescriptor {
    /// What there is to read now, at most 64 KiB; empty at the end.
    ///
    /// Waits where there is nothing.
    ///
    /// C: `read`.
    package func readAvailable() throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 64 * 1024) { buffer, initialized in
            do throws(Errno) {
                initialized = try valueOrErrno {
                    unsafe Glibc.read(rawValue, buffer.baseAddress, buffer.count)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
