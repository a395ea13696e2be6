// SPDX-License-Identifier: Apache-2.0

import Platform

/// HTTP over libcurl, which is opened by the first transfer.
///
/// Transfers run on separate threads, and their connections stay open for the next request to the same server. No thread of
/// Swift's pool ever blocks. A child made by fork(2) has separate threads and connections.
package final class Transport: Sendable {
    private let sessions: PerProcess<CurlSessionPool>

    /// Creates a transport with the system's libcurl.
    ///
    /// - Parameter mostTransfers: the maximum number of concurrent transfers of tasks; more wait, within their limits. A
    ///   server without a transfer in progress may have one beyond that, up to twice as many in total.
    package convenience init(mostTransfers: Int = 32) {
        self.init(mostTransfers: mostTransfers) { () throws(TransportError) in try LibCurl.system.get() }
    }

    /// Creates a transport with another library than the system's, for tests.
    init(mostTransfers: Int, _ library: @escaping @Sendable () throws(TransportError) -> LibCurl) {
        sessions = PerProcess { CurlSessionPool(limit: mostTransfers, library) }
    }

    /// Sends `request` and returns the response when its body has arrived.
    ///
    /// Cancelling the task ends it at once. Bytes written to a descriptor before an error remain. On a waiting thread
    /// (``WaitingThread``) that thread transfers, unless the transfer must wait for its turn.
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

    /// Does the same in the calling thread, which may block: any number of threads transfer at once.
    ///
    /// Works without a further thread. SIGPIPE is blocked meanwhile.
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
