// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// A line of a head.
package struct HeaderField: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// One transfer: what is asked for, what is sent, and where the body goes.
///
/// Descriptors are the caller's. They must stay open until the call returns, and are not used any more then; reads and
/// writes begin at their offset. One that others have set to not block is waited for all the same.
package struct TransportRequest: Sendable {
    /// What is sent.
    package enum Source: Sendable {
        case nothing
        /// Copied once.
        case bytes(Data)
        /// `length` bytes; nil: to the end, in chunks. Only a regular file can be sent again where a kept connection
        /// turns out to be closed.
        case descriptor(Int32, length: Int64?)
    }

    /// Where the body goes.
    package enum Output: Sendable {
        /// Into ``TransportResponse/body``.
        case memory
        /// In pieces of at most 64 KiB; who reads slowly at the other end of a pipe slows the server down.
        case descriptor(Int32)
    }

    /// What becomes of the body of a response.
    package enum Disposition: Sendable {
        /// It goes to the output.
        case keep
        /// It is read and dropped; the connection can be used again.
        case discard
        /// The transfer ends at once, and is none the worse for it; the connection is closed.
        case stop
    }

    package var method = "GET"
    /// `http:` or `https:`, whole and escaped.
    package var url: String
    package var fields: [HeaderField] = []
    package var source = Source.nothing
    package var output = Output.memory
    /// Asked once, in the transport's thread, when the first byte of the body is there. It must not block.
    package var disposition: @Sendable (TransportResponse) -> Disposition = { _ in .keep }
    /// Redirects that are followed, of GET and HEAD only, to http and https only. Others come as responses.
    ///
    /// `Authorization` and `Cookie` do not go to another server; fields of other names do.
    package var mostRedirects = 0
    /// Bodies are decompressed (gzip, deflate and whatever libcurl knows); ``mostBytes`` counts what comes out.
    package var decodesContent = false
    /// Bytes of the body.
    package var mostBytes = Int64.max
    /// Bytes of all heads: redirects' and interim responses' too.
    package var mostHeadBytes = 256 * 1024
    /// For all of it, from the call on, counted in milliseconds; nil: none.
    package var timeLimit: Duration?
    /// Until the connection is there; nil: libcurl's own 300 s.
    package var connectLimit: Duration?
    /// How long there may be not a byte either way; a caller who is slow himself does not count.
    package var stallLimit: Duration?
    package var security = TransportSecurity()
    package var proxy = TransportProxy.environment
    package var credentials: TransportCredentials?
    /// HTTP/2 where the server offers it over TLS.
    package var allowsHTTP2 = true

    package init(_ url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

/// Whom to trust, and who one is.
package struct TransportSecurity: Sendable, Equatable {
    /// A file (PEM) of authorities; nil: `SSL_CERT_FILE`, else the system's.
    package var authorityFile: String?
    /// One's own certificate (PEM), and its key if that is in another file.
    package var certificateFile: String?
    package var keyFile: String?
    package var keyPassword: String?

    package init(
        authorityFile: String? = nil,
        certificateFile: String? = nil,
        keyFile: String? = nil,
        keyPassword: String? = nil
    ) {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.keyPassword = keyPassword
    }
}

/// Which proxy, if any.
package enum TransportProxy: Sendable, Equatable {
    /// `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, but never for this machine itself.
    case environment
    case none
    /// `http://`, `https://` or `socks5h://`, for all servers.
    case server(String)
}

/// Who asks; never part of a message.
package struct TransportCredentials: Sendable, Equatable {
    package var user: String
    package var password: String
    /// Sign as AWS does, such as "aws:amz:eu-central-1:s3"; nil: basic authentication.
    package var signature: String?

    package init(user: String, password: String, signature: String? = nil) {
        self.user = user
        self.password = password
        self.signature = signature
    }
}

extension TransportRequest {
    /// The URL without user, password and query, for messages.
    var place: String {
        guard let scheme = url.firstRange(of: "://") else { return "the URL" }
        let rest = url[scheme.upperBound...]
        let bare = rest.prefix { $0 != "?" && $0 != "#" }
        let authority = bare.prefix { $0 != "/" }
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        return String(url[..<scheme.upperBound] + host + bare[authority.endIndex...])
    }

    /// What can't be sent is refused before anything is opened.
    func check() throws(TransportError) {
        let isToken = !method.isEmpty && method.utf8.allSatisfy(Self.isTokenByte)
        guard isToken else { throw TransportError(.invalidRequest, "\(place): not a method: \(method)") }
        let scheme = url.prefix { $0 != ":" }.lowercased()
        guard scheme == "http" || scheme == "https", url.dropFirst(scheme.count).hasPrefix("://") else {
            throw TransportError(.unsupportedScheme, "\(place): only http and https are supported")
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw TransportError(.invalidRequest, "\(place): a space or a control character in the URL")
        }
        for field in fields {
            let isName = !field.name.isEmpty && field.name.utf8.allSatisfy(Self.isTokenByte)
            guard isName, field.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                // Without the value, which may be a secret.
                let name = field.name.debugDescription
                throw TransportError(.invalidRequest, "\(place): not a header field: \(name)")
            }
        }
        if mostBytes < 0 || mostHeadBytes < 0 || mostRedirects < 0 {
            throw TransportError(.invalidRequest, "\(place): a negative limit")
        }
    }

    /// RFC 9110, 5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
