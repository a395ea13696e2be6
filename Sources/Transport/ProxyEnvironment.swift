// SPDX-License-Identifier: Apache-2.0

import Platform

/// The certificate authorities and proxies that environment variables set.
struct ProxyEnvironment: Sendable {
    /// The settings of this process, read once: getenv(3) is unsafe while other threads change the environment.
    static let own = ProxyEnvironment { name in
        CurrentProcess.environmentBytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The value of `SSL_CERT_FILE`, which OpenSSL's own programs use and libcurl ignores.
    let authorityFile: String?
    /// Servers that are accessed without a proxy; always includes this machine.
    let withoutProxy: String
    private let forHTTP: String?
    private let forHTTPS: String?

    /// Reads environment variables.
    ///
    /// - Parameter variable: returns the value of a variable, or nil if it is not set.
    init(_ variable: (String) -> String?) {
        func first(_ names: [String]) -> String? {
            for name in names {
                if let value = variable(name), !value.isEmpty { return value }
            }
            return nil
        }
        authorityFile = first(["SSL_CERT_FILE"])
        // HTTP_PROXY is not used: in CGI, a client can set it by the header field `Proxy`.
        forHTTP = first(["http_proxy", "all_proxy", "ALL_PROXY"])
        forHTTPS = first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        let own = "localhost,.localhost,127.0.0.1,127.0.0.0/8,::1,[::1]"
        withoutProxy =
            switch first(["no_proxy", "NO_PROXY"]) {
            case nil: own
            case "*": "*"
            case let given?: "\(given),\(own)"
            }
    }

    /// Returns the proxy for a URL, ignoring ``withoutProxy``.
    func proxy(for url: String) -> String? {
        url.prefix(6).lowercased() == "https:" ? forHTTPS : forHTTP
    }
}
