// SPDX-License-Identifier: Apache-2.0

import CTransport
import FoundationEssentials

extension Line {
    /// - Parameters:
    ///   - isRead: whether the body goes to nothing but a reader.
    ///   - left: until when all of it has to be done.
    func setUp(_ request: TransportRequest, isRead: Bool, within left: Duration?) throws(TransportError) {
        try set(ctransport_url, request.url, request)
        try set(ctransport_http_version, versions(request), request)
        // Libcurl gives half of the remaining time to an address that is not the last.
        if let limit = [request.connectLimit, left].compactMap({ $0 }).min() {
            // As many as curl takes.
            let milliseconds = min(max(1, limit.milliseconds), Int64(Int32.max))
            try set(ctransport_connect_milliseconds, Int(milliseconds), request)
        }
        if request.decodesContent {
            try set(ctransport_accept_encoding, "", request)
        } else {
            // Otherwise some versions refuse a transfer coding that they don't know, and others pass it over.
            try set(ctransport_decodes_content, 0, request)
        }
        try setUpMethod(request)
        try setUpFields(request)
        try setUpSecurity(request)
        try setUpProxy(request.proxy, request)
        let output =
            switch request.output {
            case _ where isRead: Int32(ctransport_to_caller)
            case .memory: Int32(ctransport_to_memory)
            case .descriptor(let number): number
            }
        unsafe ctransport_receive(line, output, request.mostBytes)
    }

    private func versions(_ request: TransportRequest) -> Int {
        // Over HTTP/2 a server can have libcurl up to 8.22.0 use freed memory while a body is sent (CVE-2026-92392).
        guard request.allowsHTTP2, case .nothing = request.source else { return ctransport_version_1_1 }
        return ctransport_version_2_over_tls
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
        switch (request.method, request.source) {
        case ("HEAD", _): try set(ctransport_no_body, 1, request)
        case ("GET", .nothing): break
        default: try set(ctransport_custom_method, request.method, request)
        }
        // Where a kept connection breaks libcurl sends a request again, of whatever method.
        if !request.isIdempotent { try set(ctransport_new_connection, 1, request) }
    }

    private func setUpFields(_ request: TransportRequest) throws(TransportError) {
        // Curl would wait a second for a leave that many servers never give.
        var lines = request.fields.contains { $0.isNamed("expect") } ? [] : ["Expect:"]
        // To curl a colon at the end means: leave that field out.
        lines += request.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        for text in lines where unsafe !ctransport_add_header(line, text) {
            throw TransportError(.noResources, "\(request.place): no memory for the request")
        }
        if let credentials = request.credentials {
            try set(ctransport_user, credentials.user, request)
            try set(ctransport_password, credentials.password, request)
        }
    }

    private func setUpSecurity(_ request: TransportRequest) throws(TransportError) {
        let security = request.security
        if let file = security.authorityFile ?? Surroundings.own.authorityFile {
            try set(ctransport_authority, file, request)
            // Older ones know no proxies over TLS.
            _ = unsafe ctransport_set_text(line, ctransport_proxy_authority, file)
        }
        if let file = security.certificateFile {
            try set(ctransport_client_certificate, file, request)
            // Without one the library would ask for it at the terminal.
            try set(ctransport_key_password, "", request)
        }
        if let file = security.keyFile { try set(ctransport_client_key, file, request) }
    }

    private func setUpProxy(_ proxy: TransportProxy, _ request: TransportRequest) throws(TransportError) {
        let (url, excepted): (String?, String) =
            switch proxy {
            case .environment: (Surroundings.own.proxy(for: request.url), Surroundings.own.withoutProxy)
            case .none: (nil, "")
            case .server(let url): (url, "")
            }
        // Empty: none, and the environment is not looked at.
        try set(ctransport_proxy, url ?? "", request)
        if url != nil { try set(ctransport_no_proxy, excepted, request) }
    }

    private func set(_ option: Int, _ text: String, _ request: TransportRequest) throws(TransportError) {
        try checkOption(unsafe ctransport_set_text(line, option, text), request)
    }

    private func set(_ option: Int, _ number: Int, _ request: TransportRequest) throws(TransportError) {
        try checkOption(unsafe ctransport_set_number(line, option, number), request)
    }

    private func checkOption(_ code: Int32, _ request: TransportRequest) throws(TransportError) {
        // CURLE_BAD_FUNCTION_ARGUMENT; of a server's response it means something else.
        if code == 43 { throw TransportError(.invalidRequest, "\(request.place): longer than libcurl takes") }
        try check(code, request)
    }
}
