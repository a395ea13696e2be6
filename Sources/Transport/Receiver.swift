// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

/// What C asks and tells of one transfer while it goes on, in its thread.
final class Receiver {
    private let line: Line
    private let call: Call
    private let request: TransportRequest
    private let redirects: Int
    /// As of when the body began.
    private var head: TransportResponse?
    private var digest: SHA256?
    private var total: Int64?
    /// Why the head says nothing certain about the body; nil if it does.
    private(set) var contradiction: String?

    /// - Parameters:
    ///   - request: that of `call`, or where a redirect leads.
    ///   - redirects: how many there were.
    init(_ line: Line, _ call: Call, _ request: TransportRequest, redirects: Int) {
        self.line = line
        self.call = call
        self.request = request
        self.redirects = redirects
    }

    /// For C, which must not use it for longer than this lives.
    var caller: ctransport_caller {
        var caller = unsafe ctransport_caller()
        unsafe caller.context = Unmanaged.passUnretained(self).toOpaque()
        unsafe caller.decide = { context in
            guard let receiver = unsafe Receiver.at(context) else { return Int32(ctransport_keep) }
            return receiver.decide()
        }
        if request.digest != nil || request.progress != nil || request.mayGrow != nil || call.pieces != nil {
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

    /// What is to become of the body.
    private func decide() -> Int32 {
        var response = line.present
        response.redirects = redirects
        head = response
        if request.follows(response) { return Int32(ctransport_discard) }
        contradiction = response.contradiction
        if contradiction != nil { return Int32(ctransport_stop) }
        switch request.disposition(response) {
        case .keep: break
        case .keepUpTo(let most): unsafe ctransport_limit(line.line, min(most, request.mostBytes))
        case .discard: return Int32(ctransport_discard)
        case .stop: return Int32(ctransport_stop)
        }
        digest = begun(response)
        if request.progress != nil {
            // Decompressed it will have another length.
            let isEncoded = request.decodesContent && !response.values("content-encoding").isEmpty
            total = isEncoded ? nil : response.contentLength
        }
        call.pieces?.begin(response)
        return Int32(ctransport_keep)
    }

    private func take(_ piece: UnsafeRawBufferPointer) -> Int32 {
        if digest != nil {
            let bytes = unsafe Span<UInt8>(_unsafeBytes: piece)
            digest?.update(bytes)
        }
        request.progress?(TransportProgress(received: line.received, total: total))
        if let mayGrow = request.mayGrow, !mayGrow(line.received) { return Int32(ctransport_reason_stopped) }
        guard let pieces = call.pieces else { return Int32(ctransport_reason_none) }
        return Int32(pieces.add(unsafe Data(piece), until: call.deadline))
    }

    /// What is known of the response now, without its body.
    func ended() -> TransportResponse {
        guard var response = head else {
            var response = line.present
            response.redirects = redirects
            response.digest = begun(response)
            contradiction = response.contradiction
            return response
        }
        response.received = line.received
        response.digest = digest
        return response
    }

    private func begun(_ response: TransportResponse) -> SHA256? {
        response.status == 206 ? request.digest : request.digest.map { _ in SHA256() }
    }
}
