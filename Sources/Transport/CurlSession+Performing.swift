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

    /// Sends requests until a response is not a redirect.
    ///
    /// The caller must call ``end()`` afterwards.
    func perform(_ transfer: Transfer) throws(TransportError) -> TransportResponse {
        var request = transfer.request
        var redirects = 0
        var connections = 0
        while true {
            var response = try perform(request, of: transfer, redirects: redirects)
            connections += response.connections
            response.connections = connections
            guard request.follows(response) else { return response }
            guard redirects < request.mostRedirects else {
                throw TransportError(.tooManyRedirects, "\(request.place): more than \(redirects) redirects")
            }
            redirects += 1
            let headBytes = unsafe ctransport_head_bytes(session)
            request = try redirected(request, by: response)
            request.mostHeadBytes -= headBytes
        }
    }

    private func redirected(
        _ request: TransportRequest,
        by response: TransportResponse
    ) throws(TransportError) -> TransportRequest {
        let place = response.values("location").first ?? ""
        guard let url = unsafe ctransport_resolve(session, request.url, place) else {
            let words = "the target of a redirect is not a URL"
            throw TransportError(.protocolViolation, "\(request.place): \(words)")
        }
        let next = request.redirected(to: unsafe String(cString: url))
        try next.check()
        return next
    }

    private func perform(
        _ request: TransportRequest,
        of transfer: Transfer,
        redirects: Int
    ) throws(TransportError) -> TransportResponse {
        try check(unsafe ctransport_begin(session), request)
        let left: Duration? = transfer.deadline.map { max(Duration.zero, $0 - ContinuousClock.now) }
        try setUp(request, within: left)
        unsafe ctransport_set_limits(
            session,
            left?.milliseconds ?? -1,
            request.stallLimit?.milliseconds ?? -1,
            request.mostHeadBytes
        )
        let receiver = Receiver(self, request, redirects: redirects)
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
