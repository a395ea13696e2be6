// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

/// Connections that libcurl keeps, for one transfer at a time; each transfer has a new handle.
@safe
final class Line: Sendable {
    nonisolated(unsafe) let line: OpaquePointer

    /// Creates a line without connections.
    ///
    /// C: `eventfd`.
    init(_ library: Library) throws(TransportError) {
        guard let line = unsafe ctransport_line_make(library.functions) else {
            throw TransportError(.noResources, "no memory or no descriptor for a transfer")
        }
        unsafe self.line = line
    }

    deinit {
        unsafe ctransport_line_free(line)
    }

    /// Ends the present transfer, or the next one before it begins.
    func wake() {
        unsafe ctransport_wake(line)
    }

    /// Discards all wake-ups so far.
    func forgetWakes() {
        unsafe ctransport_forget_wakes(line)
    }

    /// Releases the last transfer; may wait for the name resolver.
    func end() {
        unsafe ctransport_end(line)
    }

    /// Performs `call` and returns its outcome, or nil if it had ended before.
    ///
    /// Blocks for as long as it takes. A failure is reported to `call` at once, since ``end()`` may take a while.
    func transfer(_ call: Call) -> Call.Outcome? {
        // Before this call can be cancelled.
        forgetWakes()
        guard call.take(self) else { return nil }
        let outcome = Result { () throws(TransportError) in try perform(call) }
        call.release()
        if case .failure = outcome { call.finish(outcome) }
        end()
        return outcome
    }

    /// Sends requests until a response is not a redirect.
    ///
    /// The caller calls ``end()`` afterwards.
    func perform(_ call: Call) throws(TransportError) -> TransportResponse {
        var request = call.request
        var redirects = 0
        var connections = 0
        while true {
            var response = try perform(request, of: call, redirects: redirects)
            connections += response.connections
            response.connections = connections
            guard request.follows(response) else { return response }
            guard redirects < request.mostRedirects else {
                throw TransportError(.tooManyRedirects, "\(request.place): more than \(redirects) redirects")
            }
            redirects += 1
            let headBytes = unsafe ctransport_head_bytes(line)
            request = try redirected(request, by: response)
            request.mostHeadBytes -= headBytes
        }
    }

    private func redirected(
        _ request: TransportRequest,
        by response: TransportResponse
    ) throws(TransportError) -> TransportRequest {
        let place = response.values("location").first ?? ""
        guard let url = unsafe ctransport_resolve(line, request.url, place) else {
            let words = "the target of a redirect is not a URL"
            throw TransportError(.protocolViolation, "\(request.place): \(words)")
        }
        let next = request.redirected(to: unsafe String(cString: url))
        try next.check()
        return next
    }

    private func perform(
        _ request: TransportRequest,
        of call: Call,
        redirects: Int
    ) throws(TransportError) -> TransportResponse {
        try check(unsafe ctransport_begin(line), request)
        let left: Duration? = call.deadline.map { max(Duration.zero, $0 - ContinuousClock.now) }
        try setUp(request, within: left)
        unsafe ctransport_set_limits(
            line,
            left?.milliseconds ?? -1,
            request.stallLimit?.milliseconds ?? -1,
            request.mostHeadBytes
        )
        let receiver = Receiver(self, call, request, redirects: redirects)
        let code = withExtendedLifetime(receiver) {
            unsafe ctransport_set_caller(line, receiver.caller)
            return unsafe ctransport_perform(line)
        }
        try checkReason(call)
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
