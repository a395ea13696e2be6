// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

/// The callbacks of one transfer, which C calls on the thread that performs the transfer.
final class Receiver {
    private let session: CurlSession
    private let request: TransportRequest
    private let redirects: Int
    /// The response when its body began; nil before that.
    private var head: TransportResponse?
    private var digest: SHA256?
    private var total: Int64?
    /// Why the body can't be read as the server meant it; nil if it can.
    private(set) var contradiction: String?

    /// Creates the receiver of one request.
    ///
    /// - Parameter redirects: the number of redirects so far.
    init(_ session: CurlSession, _ request: TransportRequest, redirects: Int) {
        self.session = session
        self.request = request
        self.redirects = redirects
    }

    /// The callbacks for C, which must not use them after this object is released.
    var caller: ctransport_caller {
        var caller = unsafe ctransport_caller()
        unsafe caller.context = Unmanaged.passUnretained(self).toOpaque()
        unsafe caller.decide = { context in
            guard let receiver = unsafe Receiver.at(context) else { return Int32(ctransport_keep) }
            return receiver.decide()
        }
        if request.digest != nil || request.progress != nil || request.mayGrow != nil {
            unsafe caller.take = { context, bytes, count in
                let piece = unsafe UnsafeRawBufferPointer(start: bytes, count: count)
                return unsafe Receiver.at(context)?.take(piece) ?? Int32(ctransport_reason_none)
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
        var response = session.present
        response.redirects = redirects
        head = response
        if request.follows(response) { return Int32(ctransport_discard) }
        contradiction = response.contradiction
        if contradiction != nil { return Int32(ctransport_stop) }
        switch request.disposition(response) {
        case .keep: break
        case .keepUpTo(let most): unsafe ctransport_limit(session.session, min(most, request.mostBytes))
        case .discard: return Int32(ctransport_discard)
        case .stop: return Int32(ctransport_stop)
        }
        digest = begun(response)
        if request.progress != nil {
            // Decompression changes the length.
            let isEncoded = request.decodesContent && !response.values("content-encoding").isEmpty
            total = isEncoded ? nil : response.contentLength
        }
        return Int32(ctransport_keep)
    }

    private func take(_ piece: UnsafeRawBufferPointer) -> Int32 {
        if digest != nil {
            let bytes = unsafe Span<UInt8>(_unsafeBytes: piece)
            digest?.update(bytes)
        }
        request.progress?(TransportProgress(received: session.received, total: total))
        if let mayGrow = request.mayGrow, !mayGrow(session.received) {
            return Int32(ctransport_reason_stopped)
        }
        return Int32(ctransport_reason_none)
    }

    /// Returns the response as received so far, without its body.
    func ended() -> TransportResponse {
        guard var response = head else {
            var response = session.present
            response.redirects = redirects
            response.digest = begun(response)
            contradiction = response.contradiction
            return response
        }
        response.received = session.received
        response.digest = digest
        return response
    }

    private func begun(_ response: TransportResponse) -> SHA256? {
        response.status == 206 ? request.digest : request.digest.map { _ in SHA256() }
    }
}
