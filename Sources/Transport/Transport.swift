// SPDX-License-Identifier: Apache-2.0

import Platform

/// HTTP over libcurl, which is opened by the first call.
///
/// Transfers run on threads of their own; their connections stay open for the next request to the same server. No thread of Swift's pool ever blocks. A child made by fork(2) has threads and
/// connections of its own.
package final class Transport: Sendable {
    private let lines: PerProcess<Lines>

    /// - Parameters:
    ///   - mostTransfers: how many at once, of tasks; more wait, within their limits. A server of which none is under
    ///     way may have one beyond that, up to twice as many in all.
    ///   - library: another one than the system's; for tests.
    package convenience init(mostTransfers: Int = 32) {
        self.init(mostTransfers: mostTransfers) { () throws(TransportError) in try Library.system.get() }
    }

    init(mostTransfers: Int, _ library: @escaping @Sendable () throws(TransportError) -> Library) {
        lines = PerProcess { Lines(limit: mostTransfers, library) }
    }

    /// Sends `request` and gives the response when its body has arrived.
    ///
    /// Cancelling the task ends it at once. What was written to a descriptor until an error stays there.
    package func perform(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try request.check()
        let call = Call(request)
        let outcome: Call.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Call.Outcome, Never>) in
                if call.start({ continuation.resume(returning: $0) }) { lines.value.run(call) }
            }
        } onCancel: {
            call.cancel()
        }
        return try outcome.get()
    }

    /// The same for threads that may block, in the calling thread: however many there are, each transfers at
    /// once.
    ///
    /// A process without threads to spare can do that, too. SIGPIPE is blocked meanwhile.
    @available(*, noasync)
    package func performAndWait(_ request: TransportRequest) throws(TransportError) -> TransportResponse {
        try request.check()
        return try lines.value.perform(Call(request))
    }

    /// Sends `request` and gives the head of the response, and the body as it is read; `request.output`
    /// counts for nothing.
    ///
    /// Returns when the first byte of the body is there, or the end. At most 256 KiB wait for the reader; the
    /// server waits for the rest, and one of the threads with it. The time limit counts until the last byte
    /// has been read.
    package func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try request.check()
        let pieces = Pieces()
        let call = Call(request, pieces)
        let head = await withTaskCancellationHandler {
            if call.start({ pieces.end($0) }) { lines.value.run(call) }
            return await pieces.head()
        } onCancel: {
            call.cancel()
        }
        return TransportStream(try head.get(), call, pieces)
    }

    /// Closes the connections that nobody uses.
    package func closeIdleConnections() {
        lines.value.closeIdle()
    }
}
