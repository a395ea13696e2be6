// SPDX-License-Identifier: Apache-2.0

/// Whom to trust, and who one is.
///
/// TLS 1.2 is the oldest that is spoken.
package struct TransportSecurity: Sendable, Hashable {
    /// A file (PEM) of authorities, for servers and proxies; nil: `SSL_CERT_FILE`, else the system's.
    package var authorityFile: String?
    /// One's own certificate (PEM), and its key, without a password, if that is in another file.
    ///
    /// Shown to every server that asks for one, after redirects too: it says who one is, and gives nothing
    /// away.
    package var certificateFile: String?
    package var keyFile: String?

    package init(authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil) {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}

/// Which proxy, if any.
package enum TransportProxy: Sendable, Equatable {
    /// `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, but never for this machine itself. They are
    /// read once.
    case environment
    case none
    /// `http://`, `https://` or `socks5h://`, for all servers; user and password in it are for the proxy.
    case server(String)
}

/// Who asks, by basic authentication; never part of a message, and never sent to another server that a redirect leads to.
package struct TransportCredentials: Sendable, Equatable {
    package var user: String
    package var password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }
}
