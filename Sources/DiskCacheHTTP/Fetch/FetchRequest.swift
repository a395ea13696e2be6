// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// An HTTP request with caching options.
///
/// ```swift
/// var request = FetchRequest("https://example.org/film")
/// request.staleIfError = .seconds(3600)
/// request.output = .file("/tmp/film")
/// ```
public struct FetchRequest: Sendable {
    /// The destination of the body.
    public enum Output: Sendable, Equatable {
        /// The body is returned in ``FetchResponse/body``.
        case memory
        /// When the body is complete, it atomically replaces a file.
        case file(String)
        /// When the body is complete, it is written to an open descriptor, which stays open.
        case descriptor(Int32)
    }

    /// An http or https URL.
    ///
    /// A user and password in the URL are sent by basic authentication, and are not part of the key.
    public var url: String
    /// The method, sent unchanged.
    ///
    /// GET and HEAD are answered from the cache. A request with an unsafe method (POST, PUT …) is forwarded; if it
    /// succeeds, it invalidates the stored responses for its URL.
    public var method: String
    /// Additional header fields.
    ///
    /// Every field (`Authorization`, `Cookie`, `X-Api-Key` and any other) is assumed to hold credentials, except a few that
    /// are known to be harmless (`Accept`, `Range`, `User-Agent` …). Fields with credentials are never stored and not sent
    /// to another server after a redirect, and requests that differ in them never share a response. `Host` must match the
    /// URL.
    public var fields: [(name: String, value: String)] = []
    /// Names of further ``fields`` that hold no credentials: requests that differ in them can share responses, and they are
    /// also sent to other servers after redirects.
    ///
    /// Not allowed: `Authorization`, `Proxy-Authorization` and `Cookie`.
    public var plainFields: [String] = []
    /// The body to send.
    public var body: Data?
    /// How stored responses may be used.
    public var mode = FetchMode.standard
    /// The freshness lifetime of responses, overriding their own lifetimes; nil for these.
    public var timeToLive: Duration?
    /// How long a stale response may be used instead of an error (RFC 5861, section 4), overriding the response's own
    /// limit; nil for that limit.
    ///
    /// A stale response with `must-revalidate` is never used.
    public var staleIfError: Duration?
    /// How long a stale response is returned at once and revalidated in the background, unless the response allows less
    /// (RFC 5861, section 3); nil for the response's own limit.
    public var staleWhileRevalidate: Duration?
    /// The SHA-256 that the body must have, as `sha256:` and 64 hexadecimal digits; any other body is an error, and is not
    /// stored.
    public var digest: String?
    /// The maximum length of the body in bytes; a longer one is an error.
    public var maximumSize: Int64?
    /// The time limit for the whole fetch, including redirects, waiting and retries; nil for no limit.
    public var timeLimit: Duration?
    /// The time limit for establishing a connection; nil for the one in ``HTTPCacheOptions``.
    public var connectLimit: Duration?
    /// The maximum time without receiving data; nil for the one in ``HTTPCacheOptions``.
    public var stallLimit: Duration?
    /// The maximum number of retries of a GET or HEAD after a temporary failure.
    public var retries = 2
    /// The maximum number of redirects that a GET or HEAD follows; each is a separate response in the cache.
    ///
    /// With 0, redirects are returned.
    public var mostRedirects = 10
    /// Tags by which the stored responses can be removed together.
    public var tags: [String] = []
    /// The destination of the body of a successful response.
    ///
    /// The body of an unsuccessful response is always returned in memory: all of it with ``Output/memory``, otherwise its
    /// first MiB.
    public var output = Output.memory
    /// Called with the progress of the download about every 100 ms, even if another process downloads, and at the end.
    public var progress: (@Sendable (FetchProgress) -> Void)?

    /// Creates a request with the defaults.
    public init(_ url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

/// The progress of a download.
public struct FetchProgress: Sendable, Equatable {
    /// Bytes received, including the bytes of earlier attempts.
    public var received: Int64
    /// The total, if known.
    public var total: Int64?
    /// The process that downloads, if it is not this one.
    public var joinedProcess: Int32?

    /// Creates a progress with these properties.
    public init(received: Int64, total: Int64? = nil, joinedProcess: Int32? = nil) {
        self.received = received
        self.total = total
        self.joinedProcess = joinedProcess
    }
}

extension HTTPRequest {
    /// Creates a caller's request, with the user and password of the URL as an `Authorization` field.
    init(_ request: FetchRequest) throws(FetchError) {
        guard let url = HTTPURL(request.url) else {
            throw FetchError(.invalidURL, "not a URL that can be fetched: give one of http or https, escaped")
        }
        guard url.host.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw FetchError(.invalidURL, "a host has letters beyond ASCII: write it as xn--… (IDNA)")
        }
        var fields = HTTPFields()
        for field in request.fields { fields.add(field.name, field.value) }
        // The host is part of the request target (RFC 9110, section 7.2), and so of the key, which contains the URL's host.
        let host = url.host + (url.port.map { ":\($0)" } ?? "")
        if let own = fields.first("Host"), HTTPText.lowercased(own) != host {
            throw FetchError(
                .invalidRequest,
                "\(url.place): the field Host differs from the URL: put the host into the URL"
            )
        }
        fields.remove(["Host"])
        if !fields.contains("Authorization"), let user = Self.user(in: request.url) {
            fields.add("Authorization", "Basic " + Data(user).base64EncodedString())
        }
        self.init(request.method, url, fields)
        plainFields = Set(request.plainFields.map(HTTPText.lowercased))
        if let name = plainFields.first(where: {
            ["authorization", "proxy-authorization", "cookie"].contains($0)
        }) {
            throw FetchError(
                .invalidRequest,
                "\(url.place): \(name) holds credentials: it can't be a plain field"
            )
        }
    }

    /// Returns the decoded `user:password` of a URL, or nil if it has none.
    private static func user(in url: String) -> [UInt8]? {
        guard let scheme = url.firstRange(of: "://") else { return nil }
        let authority = url[scheme.upperBound...].utf8.prefix { !"/?#".utf8.contains($0) }
        guard let end = authority.lastIndex(of: UInt8(ascii: "@")) else { return nil }
        var bytes: [UInt8] = []
        var rest = Array(authority[..<end])[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let meant = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(meant)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes.contains(UInt8(ascii: ":")) ? bytes : bytes + [UInt8(ascii: ":")]
    }
}
