// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

extension Line {
    // MARK: Failures

    func check(_ code: Int32, _ request: TransportRequest) throws(TransportError) {
        guard code != 0 else { return }
        let answer = unsafe ctransport_proxy_status(line)
        if answer >= 300 {
            let code: TransportError.Code = answer == 407 ? .proxyForbidden : .connectionFailed
            throw TransportError(code, "\(request.place): the proxy answers \(answer)")
        }
        let words = unsafe String(cString: ctransport_message(line, code))
        throw TransportError(curl: code, words, request.place)
    }

    /// Throws an error if this module ended the transfer, and not libcurl.
    func checkReason(_ call: Call) throws(TransportError) {
        guard Int(unsafe ctransport_reason(line)) != ctransport_reason_none else { return }
        let place = call.request.place
        let cause = Errno(rawValue: unsafe ctransport_errno(line))
        switch Int(unsafe ctransport_reason(line)) {
        case ctransport_reason_cancelled: throw call.cancelled
        case ctransport_reason_timed_out: throw call.timedOut
        case ctransport_reason_stalled:
            throw TransportError(.timedOut, "\(place): nothing came for too long")
        case ctransport_reason_too_slow:
            throw TransportError(.timedOut, "\(place): less than 5 bytes a second came")
        case ctransport_reason_too_large:
            throw TransportError(.tooLarge, "\(place): longer than \(call.request.mostBytes) bytes")
        case ctransport_reason_head_too_large:
            throw TransportError(
                .headTooLarge,
                "\(place): heads longer than \(call.request.mostHeadBytes) bytes"
            )
        case ctransport_reason_output where cause.tellsOfFullDisk:
            throw TransportError(.noSpace, "\(place): write the body: \(cause)", cause: cause)
        case ctransport_reason_output:
            throw TransportError(.outputFailed, "\(place): write the body: \(cause)", cause: cause)
        case ctransport_reason_source:
            throw TransportError(.sourceFailed, "\(place): read the body to send: \(cause)", cause: cause)
        case ctransport_reason_source_too_short:
            let words = "the body to send is shorter than its declared length"
            throw TransportError(.sourceFailed, "\(place): \(words)")
        case ctransport_reason_memory:
            throw TransportError(.noResources, "\(place): no memory for the response", cause: .outOfMemory)
        default: return
        }
    }

    /// Whether a callback has stopped the transfer.
    var isStopped: Bool { Int(unsafe ctransport_reason(line)) == ctransport_reason_stopped }

    // MARK: Responses

    /// The present state of the response.
    var present: TransportResponse {
        var count = 0
        let head = unsafe UnsafeRawBufferPointer(start: ctransport_head(line, &count), count: count)
        var response = TransportResponse(head: unsafe Span(_unsafeBytes: head))
        response.status = unsafe ctransport_status(line)
        response.connections = unsafe ctransport_connections(line)
        response.received = received
        if let url = unsafe ctransport_effective_url(line) { response.url = unsafe String(cString: url) }
        return response
    }

    /// Bytes of the body so far.
    var received: Int64 { unsafe ctransport_received(line) }

    func takeBody() -> Data {
        var count = 0
        guard let body = unsafe ctransport_take_body(line, &count) else { return Data() }
        return unsafe Data(bytesNoCopy: body, count: count, deallocator: .free)
    }
}
