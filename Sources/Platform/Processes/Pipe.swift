// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// A pipe whose ends are both close-on-exec from the start, so that a child started by another thread can't inherit them.
package struct Pipe: ~Copyable, Sendable {
    package let reading: FileDescriptor
    package let writing: FileDescriptor

    /// C: `pipe2`.
    package init() throws(Errno) {
        var ends = cplatform_pipe_ends()
        try systemCall(.pipe) { unsafe cplatform_pipe(&ends) }
        reading = FileDescriptor(owning: ends.reading)
        writing = FileDescriptor(owning: ends.writing)
    }

    /// Closes the writing end and returns the reading end, which reaches its end once all other writers have closed
    /// theirs.
    package consuming func closingWriting() -> FileDescriptor {
        reading
    }
}

/// Functions that wait for pipes.
package enum Readiness {
    /// Waits for at most `limit`, and returns the descriptors that are readable or at end of file.
    ///
    /// A signal ends the wait early, with an empty result.
    ///
    /// C: `poll`.
    ///
    /// - Parameter output: A descriptor that the function also returns once it is writable or has no reader.
    package static func wait(
        for descriptors: [Int32],
        orWriting output: Int32? = nil,
        limit: Duration
    ) throws(Errno) -> [Int32] {
        let milliseconds = Int32(clamping: max(0, limit.saturatingNanoseconds) / 1_000_000)
        var requests = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        if let output { requests.append(pollfd(fd: output, events: Int16(POLLOUT), revents: 0)) }
        let count = nfds_t(requests.count)
        if unsafe SystemCall.poll.isRefused || poll(&requests, count, milliseconds) == -1 {
            let error = Errno.current
            guard error == .interrupted else { throw error }
            return []
        }
        return requests.filter { $0.revents != 0 }.map(\.fd)
    }

    /// Waits until `descriptor` is readable or at end of file.
    ///
    /// C: `poll`.
    static func wait(forReading descriptor: Int32) throws(Errno) {
        try wait(for: descriptor, POLLIN)
    }

    /// Waits until `descriptor` is writable or has no reader.
    ///
    /// C: `poll`.
    static func wait(forWriting descriptor: Int32) throws(Errno) {
        try wait(for: descriptor, POLLOUT)
    }

    @inline(never)
    private static func wait(for descriptor: Int32, _ event: Int32) throws(Errno) {
        var request = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        try systemCall(.poll) { unsafe poll(&request, 1, -1) }
    }
}
