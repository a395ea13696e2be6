// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// A pipe, both ends close-on-exec from the start: a child that another thread starts must not get them.
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

    /// Closes this process's writing end, so that the reading end comes to an end with the other writers.
    package consuming func closingWriting() -> FileDescriptor {
        reading
    }
}

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
        let count = nfds_t(requests.count)
        if unsafe SystemCall.poll.isRefused || poll(&requests, count, milliseconds) == -1 {
            let error = Errno.current
            guard error == .interrupted else { throw error }
            return []
        }
        return requests.filter { $0.revents != 0 }.map(\.fd)
    }

    /// Waits until `descriptor` has something to read or has come to its end.
    ///
    /// C: `poll`.
    static func wait(forReading descriptor: Int32) throws(Errno) {
        try wait(for: descriptor, POLLIN)
    }

    /// Waits until `descriptor` can be written to, or has no reader any more.
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
