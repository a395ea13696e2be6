// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials
import Platform

/// A handle of libcurl's with the connections that it keeps, for one transfer at a time.
@safe
final class Line: Sendable {
    private nonisolated(unsafe) let line: OpaquePointer

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

    /// Ends the present transfer, or the next before it has begun.
    func wake() {
        unsafe ctransport_wake(line)
    }

    /// Does what `call` asks for, and says how that went; nil: it had ended before. Blocks for as long as it takes.
    ///
    /// A failure is told to `call` at once: letting the handle go may wait for the resolver of names.
    func transfer(_ call: Call) -> Call.Outcome? {
        // Wake-ups for earlier calls are forgotten before this one can be cancelled.
        let code = unsafe ctransport_begin(line)
        guard call.take(self) else { return nil }
        let outcome = Result { () throws(TransportError) in
            try check(code, call.request)
            return try perform(call)
        }
        call.release()
        if case .failure = outcome { call.finish(outcome) }
        unsafe ctransport_end(line)
        return outcome
    }

    private func perform(_ call: Call) throws(TransportError) -> TransportResponse {
        let request = call.request
        try setUp(request)
        let left: Duration? = call.deadline.map { max(Duration.zero, $0 - ContinuousClock.now) }
        unsafe ctransport_set_limits(
            line,
            left.map(Self.milliseconds) ?? -1,
            request.stallLimit.map(Self.milliseconds) ?? -1,
            request.mostHeadBytes
        )
        let decision = Decision(self, request)
        let ask: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { context in
            guard let context = unsafe context else { return Int32(ctransport_keep) }
            return unsafe Unmanaged<Decision>.fromOpaque(context).takeUnretainedValue().answer
        }
        let code = withExtendedLifetime(decision) {
            unsafe ctransport_on_body(line, ask, Unmanaged.passUnretained(decision).toOpaque())
            return unsafe ctransport_perform(line)
        }
        try checkReason(call)
        if Int(unsafe ctransport_reason(line)) != ctransport_reason_stopped { try check(code, request) }
        var response = present
        if case .memory = request.output { response.body = takeBody() }
        return response
    }

    // MARK: Failures

    private func check(_ code: Int32, _ request: TransportRequest) throws(TransportError) {
        guard code != 0 else { return }
        let words = unsafe String(cString: ctransport_message(line, code))
        throw TransportError(curl: code, words, request.place)
    }

    /// What this module has ended, and not libcurl.
    private func checkReason(_ call: Call) throws(TransportError) {
        let place = call.request.place
        let cause = Errno(rawValue: unsafe ctransport_errno(line))
        switch Int(unsafe ctransport_reason(line)) {
        case ctransport_reason_cancelled: throw call.cancelled
        case ctransport_reason_timed_out: throw call.timedOut
        case ctransport_reason_stalled:
            throw TransportError(.timedOut, "\(place): nothing came for too long")
        case ctransport_reason_too_large:
            throw TransportError(.tooLarge, "\(place): longer than \(call.request.mostBytes) bytes")
        case ctransport_reason_head_too_large:
            throw TransportError(
                .headTooLarge,
                "\(place): heads longer than \(call.request.mostHeadBytes) bytes"
            )
        case ctransport_reason_output:
            throw TransportError(.outputFailed, "\(place): write the body: \(cause)", cause: cause)
        case ctransport_reason_source:
            throw TransportError(.sourceFailed, "\(place): read what is sent: \(cause)", cause: cause)
        case ctransport_reason_source_too_short:
            throw TransportError(.sourceFailed, "\(place): what is sent is shorter than was said")
        case ctransport_reason_memory:
            throw TransportError(.noResources, "\(place): no memory for the response", cause: .outOfMemory)
        default: return
        }
    }

    // MARK: Responses

    /// What is known of the response now.
    fileprivate var present: TransportResponse {
        var response = TransportResponse()
        response.status = unsafe ctransport_status(line)
        response.redirects = unsafe ctransport_redirects(line)
        response.connections = unsafe ctransport_connections(line)
        response.received = unsafe ctransport_received(line)
        if let url = unsafe ctransport_effective_url(line) { response.url = unsafe String(cString: url) }
        var count = 0
        if let head = unsafe ctransport_head(line, &count) {
            response.read(head: unsafe Array(UnsafeRawBufferPointer(start: head, count: count)))
        }
        return response
    }

    private func takeBody() -> Data {
        var count = 0
        guard let body = unsafe ctransport_take_body(line, &count) else { return Data() }
        return unsafe Data(bytesNoCopy: body, count: count, deallocator: .free)
    }

    // MARK: Requests

    private func setUp(_ request: TransportRequest) throws(TransportError) {
        try set(ctransport_url, request.url, request)
        try set(ctransport_http_version, versions(request), request)
        if let limit = request.connectLimit {
            try set(ctransport_connect_milliseconds, Int(max(1, Self.milliseconds(limit))), request)
        }
        if request.decodesContent { try set(ctransport_accept_encoding, "", request) }
        try setUpMethod(request)
        try setUpFields(request)
        try setUpSecurity(request)
        try setUpProxy(request.proxy, request)
        switch request.output {
        case .memory: unsafe ctransport_receive(line, -1, request.mostBytes)
        case .descriptor(let number): unsafe ctransport_receive(line, number, request.mostBytes)
        }
    }

    private func versions(_ request: TransportRequest) -> Int {
        request.allowsHTTP2 ? ctransport_version_2_over_tls : ctransport_version_1_1
    }

    private func setUpMethod(_ request: TransportRequest) throws(TransportError) {
        switch request.source {
        case .nothing: break
        case .bytes(let data):
            let code = unsafe data.withUnsafeBytes { bytes in
                unsafe ctransport_send_bytes(line, bytes.baseAddress, bytes.count)
            }
            try check(code, request)
        case .descriptor(let number, let length):
            try check(unsafe ctransport_send_descriptor(line, number, length ?? -1), request)
        }
        let isHead = request.method == "HEAD"
        if isHead { try set(ctransport_no_body, 1, request) }
        guard isHead || request.method == "GET" else {
            try set(ctransport_custom_method, request.method, request)
            return
        }
        guard request.mostRedirects > 0 else { return }
        try set(ctransport_follows, 1, request)
        try set(ctransport_most_redirects, request.mostRedirects, request)
    }

    private func setUpFields(_ request: TransportRequest) throws(TransportError) {
        // Curl would wait a second for a leave that many servers never give.
        var lines = request.fields.contains { $0.name.lowercased() == "expect" } ? [] : ["Expect:"]
        // To curl a colon at the end means: leave that field out.
        lines += request.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        for text in lines where unsafe !ctransport_add_header(line, text) {
            throw TransportError(.noResources, "\(request.place): no memory for the request")
        }
        if let credentials = request.credentials {
            try set(ctransport_user, credentials.user, request)
            try set(ctransport_password, credentials.password, request)
            if let signature = credentials.signature { try set(ctransport_aws_signature, signature, request) }
        }
    }

    private func setUpSecurity(_ request: TransportRequest) throws(TransportError) {
        let security = request.security
        if let file = security.authorityFile ?? Surroundings.authorityFile {
            try set(ctransport_authority, file, request)
        }
        if let file = security.certificateFile { try set(ctransport_client_certificate, file, request) }
        if let file = security.keyFile { try set(ctransport_client_key, file, request) }
        if let password = security.keyPassword { try set(ctransport_key_password, password, request) }
    }

    private func setUpProxy(_ proxy: TransportProxy, _ request: TransportRequest) throws(TransportError) {
        switch proxy {
        case .environment: try set(ctransport_no_proxy, Surroundings.withoutProxy, request)
        // Empty: none, whatever the environment says.
        case .none: try set(ctransport_proxy, "", request)
        case .server(let url):
            try set(ctransport_proxy, url, request)
            try set(ctransport_no_proxy, "", request)
        }
    }

    private func set(_ option: Int, _ text: String, _ request: TransportRequest) throws(TransportError) {
        try check(unsafe ctransport_set_text(line, option, text), request)
    }

    private func set(_ option: Int, _ number: Int, _ request: TransportRequest) throws(TransportError) {
        try check(unsafe ctransport_set_number(line, option, number), request)
    }

    /// Rounded up: a limit below a millisecond is not none.
    private static func milliseconds(_ duration: Duration) -> Int64 {
        let nanoseconds = max(0, duration.saturatingNanoseconds)
        return nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
    }
}

/// What a request says of the body, where C can ask.
private final class Decision {
    private let line: Line
    private let request: TransportRequest

    init(_ line: Line, _ request: TransportRequest) {
        self.line = line
        self.request = request
    }

    var answer: Int32 {
        switch request.disposition(line.present) {
        case .keep: Int32(ctransport_keep)
        case .discard: Int32(ctransport_discard)
        case .stop: Int32(ctransport_stop)
        }
    }
}

/// What the environment says, read once: other threads may change it.
private enum Surroundings {
    /// As OpenSSL's own programs do; libcurl does not look.
    static let authorityFile = text("SSL_CERT_FILE")

    /// Servers that are asked without a proxy: this machine always.
    static let withoutProxy: String = {
        let own = "localhost,.localhost,127.0.0.1,127.0.0.0/8,::1,[::1]"
        guard let given = text("no_proxy") ?? text("NO_PROXY") else { return own }
        return given == "*" ? given : "\(given),\(own)"
    }()

    private static func text(_ name: String) -> String? {
        let bytes = CurrentProcess.environmentBytes(name) ?? []
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}
