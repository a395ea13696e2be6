// SPDX-License-Identifier: Apache-2.0

/// The trusted certificate authorities, and the client certificate.
///
/// The oldest accepted version is TLS 1.2.
package struct TransportSecurity: Sendable, Hashable {
    /// A PEM file with the authorities for servers and proxies; nil for `SSL_CERT_FILE`, or, if that is not set, the
    /// system's.
    package var authorityFile: String?
    /// A PEM file with the client certificate; its key, without a password, is in the same file or in ``keyFile``.
    ///
    /// The certificate is presented to each server that requests one, also after redirects: it identifies the client, but
    /// reveals no secret.
    package var certificateFile: String?
    package var keyFile: String?

    package init(authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil) {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}

/// The choice of a proxy for a request.
package enum TransportProxy: Sendable, Equatable {
    /// The proxy in `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, which are read once; no proxy for this
    /// machine itself.
    case environment
    case none
    /// A URL with `http://`, `https://` or `socks5h://`, for all servers; user and password in it are for the proxy.
    case server(String)
}

/// Credentials for basic authentication; they never appear in a message, and are never sent to another server after a
/// redirect.
package struct TransportCredentials: Sendable, Equatable {
    package var user: String
    package var password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }
}
