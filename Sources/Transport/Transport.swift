// SPDX-License-Identifier: Apache-2.0

import Platform

/// An HTTP client that uses libcurl, which the first transfer opens.
///
/// Transfers run on separate threads, and their connections stay open for the next request to the same server. A transfer
/// never blocks a thread of Swift's pool. A child made by fork(2) has separate threads and connections.
package final class Transport: Sendable {
    private let sessions: PerProcess<CurlSessionPool>

    /// Creates a transport with the system's libcurl.
    ///
    /// - Parameters:
    ///   - mostTransfers: the maximum number of concurrent transfers of tasks. Further transfers wait, and the wait counts
    ///     toward their time limits. A server without a transfer in progress may have one beyond the maximum, up to twice
    ///     the maximum in total.
    ///   - mostPerServer: the maximum number of these that one server has.
    package convenience init(mostTransfers: Int = 32, mostPerServer: Int = .max) {
        self.init(mostTransfers: mostTransfers, mostPerServer: mostPerServer) { () throws(TransportError) in
            try LibCurl.system.get()
        }
    }

    /// Creates a transport with a library other than the system's, for tests.
    init(
        mostTransfers: Int,
        mostPerServer: Int = .max,
        _ library: @escaping @Sendable () throws(TransportError) -> LibCurl
    ) {
        sessions = PerProcess { CurlSessionPool(limit: mostTransfers, perServer: mostPerServer, library) }
    }

    /// Sends `request` and returns the response after its body has arrived.
    ///
    /// Cancelling the task ends the transfer at once. Bytes written to a descriptor before an error remain. On a
    /// ``WaitingThread``, that thread performs the transfer, unless the transfer must wait for its turn; cancelling the
    /// task does not end a transfer that the waiting thread performs.
    package func perform(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try request.check()
        let transfer = Transfer(request)
        if WaitingThread.isCurrent, let outcome = sessions.value.performNow(transfer) {
            return try outcome.get()
        }
        let outcome: Transfer.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Transfer.Outcome, Never>) in
                if transfer.start({ continuation.resume(returning: $0) }) { sessions.value.run(transfer) }
            }
        } onCancel: {
            transfer.cancel()
        }
        return try outcome.get()
    }

    /// Sends `request` like ``perform(_:)``, but performs the transfer on the calling thread, which blocks.
    ///
    /// It needs no other thread, and any number of threads may perform transfers at once. While the transfer might cause
    /// SIGPIPE, the signal is blocked in the calling thread.
    @available(*, noasync)
    package func performAndWait(_ request: TransportRequest) throws(TransportError) -> TransportResponse {
        try request.check()
        return try sessions.value.perform(Transfer(request))
    }

    /// Closes the idle connections.
    package func closeIdleConnections() {
        sessions.value.closeIdle()
    }
}
