// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

/// The callbacks of one transfer, which C calls on the thread that performs the transfer.
final class Receiver {
    private let session: CurlSession
    private let request: TransportRequest
    /// The response when its body began; nil before that.
    private var head: TransportResponse?
    /// Why the body can't be read as the server meant it; nil if it can.
    private(set) var contradiction: String?

    init(_ session: CurlSession, _ request: TransportRequest) {
        self.session = session
        self.request = request
    }

    /// The callbacks for C, which must not use them after this object is released.
    var caller: ctransport_caller {
        var caller = unsafe ctransport_caller()
        unsafe caller.context = Unmanaged.passUnretained(self).toOpaque()
        unsafe caller.decide = { context in
            guard let receiver = unsafe Receiver.at(context) else { return Int32(ctransport_keep) }
            return receiver.decide()
        }
        if request.mayGrow != nil {
            unsafe caller.taken = { context in
                unsafe Receiver.at(context)?.taken() ?? Int32(ctransport_reason_none)
            }
        }
        if request.makeSpace != nil {
            unsafe caller.make_space = { context, count in
                unsafe Receiver.at(context)?.request.makeSpace?(count) ?? false
            }
        }
        return unsafe caller
    }

    private static func at(_ context: UnsafeMutableRawPointer?) -> Receiver? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<Receiver>.fromOpaque(context).takeUnretainedValue()
    }

    /// Returns the disposition of the body.
    private func decide() -> Int32 {
        let response = session.present
        head = response
        contradiction = response.contradiction
        if contradiction != nil { return Int32(ctransport_stop) }
        switch request.disposition(response) {
        case .keep: break
        case .keepUpTo(let most): unsafe ctransport_limit(session.session, min(most, request.mostBytes))
        case .discard: return Int32(ctransport_discard)
        case .stop: return Int32(ctransport_stop)
        }
        return Int32(ctransport_keep)
    }

    private func taken() -> Int32 {
        guard let mayGrow = request.mayGrow, !mayGrow(session.received) else {
            return Int32(ctransport_reason_none)
        }
        return Int32(ctransport_reason_stopped)
    }

    /// Returns the response as received so far, without its body.
    func ended() -> TransportResponse {
        guard var response = head else {
            let response = session.present
            contradiction = response.contradiction
            return response
        }
        response.received = session.received
        return response
    }
}
