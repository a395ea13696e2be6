// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials

extension CurlSession {
    /// Sets the options of a transfer.
    ///
    /// - Parameter left: the time left for the whole transfer.
    func setUp(_ request: TransportRequest, within left: Duration?) throws(TransportError) {
        try set(ctransport_url, request.url, request)
        try set(ctransport_http_version, versions(request), request)
        // libcurl divides this time among the server's addresses: each but the last gets half of the remaining time.
        if let limit = [request.connectLimit, left].compactMap({ $0 }).min() {
            // Int32.max is the maximum that libcurl accepts.
            let milliseconds = min(max(1, limit.milliseconds), Int64(Int32.max))
            try set(ctransport_connect_milliseconds, Int(milliseconds), request)
        }
        // By default, some versions reject an unknown transfer coding, and others ignore it.
        try set(ctransport_decodes_content, 0, request)
        try setUpMethod(request)
        try setUpFields(request)
        try setUpSecurity(request)
        try setUpProxy(request.proxy, request)
        let output =
            switch request.output {
            case .memory: Int32(ctransport_to_memory)
            case .descriptor(let number): number
            }
        unsafe ctransport_receive(session, output, request.mostBytes)
    }

    private func versions(_ request: TransportRequest) -> Int {
        // Over HTTP/2, a server can make libcurl up to 8.22.0 use freed memory while a body is sent (CVE-2026-92392).
        guard request.body == nil else { return ctransport_version_1_1 }
        return ctransport_version_2_over_tls
    }

    private func setUpMethod(_ request: TransportRequest) throws(TransportError) {
        if let body = request.body {
            let code = unsafe body.withUnsafeBytes { bytes in
                unsafe ctransport_send_bytes(session, bytes.baseAddress, bytes.count)
            }
            try check(code, request)
        }
        switch (request.method, request.body) {
        case ("HEAD", _): try set(ctransport_no_body, 1, request)
        case ("GET", nil): break
        default: try set(ctransport_custom_method, request.method, request)
        }
        // If a reused connection breaks, libcurl sends the request again, whatever its method.
        if !request.isIdempotent { try set(ctransport_new_connection, 1, request) }
    }

    private func setUpFields(_ request: TransportRequest) throws(TransportError) {
        // By default, libcurl waits a second for a 100 (Continue), which many servers never send.
        var lines = request.fields.contains { $0.isNamed("expect") } ? [] : ["Expect:"]
        // libcurl omits a field whose line ends with a colon; with a semicolon it sends an empty value.
        lines += request.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        for text in lines where unsafe !ctransport_add_header(session, text) {
            throw TransportError(.noResources, "\(request.place): no memory for the request")
        }
        if let credentials = request.credentials {
            try set(ctransport_user, credentials.user, request)
            try set(ctransport_password, credentials.password, request)
        }
    }

    private func setUpSecurity(_ request: TransportRequest) throws(TransportError) {
        let security = request.security
        if let file = security.authorityFile ?? ProxyEnvironment.own.authorityFile {
            try set(ctransport_authority, file, request)
            // The result is ignored, because older versions do not support proxies over TLS.
            _ = unsafe ctransport_set_text(session, ctransport_proxy_authority, file)
        }
        if let file = security.certificateFile {
            try set(ctransport_client_certificate, file, request)
            // If no password is set, the TLS library asks for one at the terminal.
            try set(ctransport_key_password, "", request)
        }
        if let file = security.keyFile { try set(ctransport_client_key, file, request) }
    }

    private func setUpProxy(_ proxy: TransportProxy, _ request: TransportRequest) throws(TransportError) {
        let (url, excepted): (String?, String) =
            switch proxy {
            case .environment:
                (ProxyEnvironment.own.proxy(for: request.url), ProxyEnvironment.own.withoutProxy)
            case .none: (nil, "")
            case .server(let url): (url, "")
            }
        // An empty text means no proxy, and the environment is ignored.
        try set(ctransport_proxy, url ?? "", request)
        if url != nil { try set(ctransport_no_proxy, excepted, request) }
    }

    private func set(_ option: Int, _ text: String, _ request: TransportRequest) throws(TransportError) {
        try checkOption(unsafe ctransport_set_text(session, option, text), request)
    }

    private func set(_ option: Int, _ number: Int, _ request: TransportRequest) throws(TransportError) {
        try checkOption(unsafe ctransport_set_number(session, option, number), request)
    }

    private func checkOption(_ code: Int32, _ request: TransportRequest) throws(TransportError) {
        // CURLE_BAD_FUNCTION_ARGUMENT, which means something else once a server has responded.
        if code == 43 { throw TransportError(.invalidRequest, "\(request.place): longer than libcurl takes") }
        try check(code, request)
    }
}
