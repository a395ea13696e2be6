// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

extension CurlSession {
    // MARK: Failures

    func check(_ code: Int32, _ request: TransportRequest) throws(TransportError) {
        guard code != 0 else { return }
        let answer = unsafe ctransport_proxy_status(session)
        if answer >= 300 {
            let code: TransportError.Code = answer == 407 ? .proxyForbidden : .connectionFailed
            throw TransportError(code, "\(request.place): the proxy answers \(answer)")
        }
        let words = unsafe String(cString: ctransport_message(session, code))
        throw TransportError(curl: code, words, request.place, hasSent: unsafe ctransport_has_sent(session))
    }

    /// Throws an error if this module, and not libcurl, ended the transfer.
    func checkReason(_ transfer: Transfer) throws(TransportError) {
        guard Int(unsafe ctransport_reason(session)) != ctransport_reason_none else { return }
        let place = transfer.request.place
        let cause = Errno(rawValue: unsafe ctransport_errno(session))
        switch Int(unsafe ctransport_reason(session)) {
        case ctransport_reason_cancelled: throw transfer.cancelled
        case ctransport_reason_timed_out: throw transfer.timedOut
        case ctransport_reason_stalled:
            throw TransportError(.timedOut, "\(place): no data arrived for too long")
        case ctransport_reason_too_slow:
            throw TransportError(.timedOut, "\(place): less than 5 bytes a second came")
        case ctransport_reason_too_large:
            throw TransportError(.tooLarge, "\(place): longer than \(transfer.request.mostBytes) bytes")
        case ctransport_reason_head_too_large:
            throw TransportError(
                .headTooLarge,
                "\(place): heads longer than \(transfer.request.mostHeadBytes) bytes"
            )
        case ctransport_reason_output where cause.isDiskFull:
            throw TransportError(.noSpace, "\(place): write the body: \(cause)", cause: cause)
        case ctransport_reason_output:
            throw TransportError(.outputFailed, "\(place): write the body: \(cause)", cause: cause)
        case ctransport_reason_memory:
            throw TransportError(.noResources, "\(place): no memory for the response", cause: .outOfMemory)
        default: return
        }
    }

    /// Whether a callback has stopped the transfer.
    var isStopped: Bool { Int(unsafe ctransport_reason(session)) == ctransport_reason_stopped }

    // MARK: Responses

    /// The response as received so far, without its body.
    var present: TransportResponse {
        var count = 0
        let head = unsafe UnsafeRawBufferPointer(start: ctransport_head(session, &count), count: count)
        var response = TransportResponse(head: unsafe Span(_unsafeBytes: head))
        response.status = unsafe ctransport_status(session)
        response.connections = unsafe ctransport_connections(session)
        response.received = received
        return response
    }

    /// The number of bytes of the body so far.
    var received: Int64 { unsafe ctransport_received(session) }

    func takeBody() -> Data {
        var count = 0
        guard let body = unsafe ctransport_take_body(session, &count) else { return Data() }
        return unsafe Data(bytesNoCopy: body, count: count, deallocator: .free)
    }
}
