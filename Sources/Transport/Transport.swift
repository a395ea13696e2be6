// SPDX-License-Identifier: Apache-2.0

import Platform

/// HTTP over libcurl, which is opened by the first call.
///
/// Transfers run on separate threads, and their connections stay open for the next request to the same server. No thread of
/// Swift's pool ever blocks. A child made by fork(2) has separate threads and connections.
package final class Transport: Sendable {
    private let lines: PerProcess<Lines>

    /// Creates a transport with the system's libcurl.
    ///
    /// - Parameter mostTransfers: the maximum number of concurrent transfers of tasks; more wait, within their limits. A
    ///   server without a transfer in progress may have one beyond that, up to twice as many in total.
    package convenience init(mostTransfers: Int = 32) {
        self.init(mostTransfers: mostTransfers) { () throws(TransportError) in try Library.system.get() }
    }

    /// Creates a transport with another library than the system's, for tests.
    init(mostTransfers: Int, _ library: @escaping @Sendable () throws(TransportError) -> Library) {
        lines = PerProcess { Lines(limit: mostTransfers, library) }
    }

    /// Sends `request` and returns the response when its body has arrived.
    ///
    /// Cancelling the task ends it at once. Bytes written to a descriptor before an error remain. On a waiting thread
    /// (``WaitingThread``) that thread transfers, unless the call must wait for its turn.
    package func perform(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try request.check()
        let call = Call(request)
        if WaitingThread.isCurrent, let outcome = lines.value.performNow(call) { return try outcome.get() }
        let outcome: Call.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Call.Outcome, Never>) in
                if call.start({ continuation.resume(returning: $0) }) { lines.value.run(call) }
            }
        } onCancel: {
            call.cancel()
        }
        return try outcome.get()
    }

    /// Does the same in the calling thread, which may block: any number of threads transfer at once.
    ///
    /// Works without a further thread. SIGPIPE is blocked meanwhile.
    @available(*, noasync)
    package func performAndWait(_ request: TransportRequest) throws(TransportError) -> TransportResponse {
        try request.check()
        return try lines.value.perform(Call(request))
    }

    /// Closes the idle connections.
    package func closeIdleConnections() {
        lines.value.closeIdle()
    }
}
