// SPDX-License-Identifier: Apache-2.0

import Platform

/// What the environment says of authorities and proxies.
struct Surroundings: Sendable {
    /// This process's, read once: other threads may change it, which getenv(3) does not survive.
    static let own = Surroundings { name in
        CurrentProcess.environmentBytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// As OpenSSL's own programs have it; libcurl does not look.
    let authorityFile: String?
    /// Servers that are asked without a proxy: this machine always.
    let withoutProxy: String
    private let forHTTP: String?
    private let forHTTPS: String?

    /// - Parameter variable: the value of a variable, nil where it is not set.
    init(_ variable: (String) -> String?) {
        func first(_ names: [String]) -> String? {
            for name in names {
                if let value = variable(name), !value.isEmpty { return value }
            }
            return nil
        }
        authorityFile = first(["SSL_CERT_FILE"])
        // Not HTTP_PROXY: CGI has servers' clients set that, by a field `Proxy`.
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

    /// The proxy for a URL, before ``withoutProxy`` is looked at.
    func proxy(for url: String) -> String? {
        url.prefix(6).lowercased() == "https:" ? forHTTPS : forHTTP
    }
}
