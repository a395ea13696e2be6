// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

extension CurlSession {
    /// Performs `transfer` and returns its outcome; nil if it has already ended.
    ///
    /// The call blocks until the transfer ends. It reports a failure to `transfer` at once, because ``end()`` may take a
    /// while.
    func carryOut(_ transfer: Transfer) -> Transfer.Outcome? {
        // Precedes `begin`, after which a cancellation of this transfer wakes the thread.
        forgetWakes()
        guard transfer.begin(wake: { [self] in wake() }) else { return nil }
        let outcome = Result { () throws(TransportError) in try perform(transfer) }
        transfer.release()
        if case .failure = outcome { transfer.finish(outcome) }
        end()
        return outcome
    }

    /// Sends the request and returns the response.
    ///
    /// The caller must call ``end()`` afterwards.
    func perform(_ transfer: Transfer) throws(TransportError) -> TransportResponse {
        let request = transfer.request
        try check(unsafe ctransport_begin(session), request)
        let left: Duration? = transfer.deadline.map { max(Duration.zero, $0 - ContinuousClock.now) }
        try setUp(request, within: left)
        unsafe ctransport_set_limits(
            session,
            left?.milliseconds ?? -1,
            request.stallLimit?.milliseconds ?? -1,
            request.mostHeadBytes
        )
        let receiver = Receiver(self, request)
        let code = withExtendedLifetime(receiver) {
            unsafe ctransport_set_caller(session, receiver.caller)
            return unsafe ctransport_perform(session)
        }
        try checkReason(transfer)
        var response = receiver.ended()
        if let reason = receiver.contradiction {
            throw TransportError(.protocolViolation, "\(request.place): \(reason)")
        }
        if !isStopped { try check(code, request) }
        if case .memory = request.output { response.body = takeBody() }
        return response
    }
}

extension Duration {
    /// The duration in milliseconds, rounded up, so that a shorter limit does not become 0.
    var milliseconds: Int64 {
        let nanoseconds = max(0, saturatingNanoseconds)
        return nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
    }
}
