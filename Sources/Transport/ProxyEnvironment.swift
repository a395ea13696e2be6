// SPDX-License-Identifier: Apache-2.0

import Platform

/// The authorities and proxies in the environment.
struct ProxyEnvironment: Sendable {
    /// Those of this process, read once: getenv(3) is unsafe while other threads change the environment.
    static let own = ProxyEnvironment { name in
        CurrentProcess.environmentBytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The variable of OpenSSL's own programs, which libcurl ignores.
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
        // Not HTTP_PROXY: in CGI, clients can set it by a field `Proxy`.
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

    /// Returns the proxy for a URL, without regard to ``withoutProxy``.
    func proxy(for url: String) -> String? {
        url.prefix(6).lowercased() == "https:" ? forHTTPS : forHTTP
    }
}
