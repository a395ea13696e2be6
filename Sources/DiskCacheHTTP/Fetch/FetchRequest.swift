// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A request for a response from the network or from the cache, with its terms.
///
/// ```swift
/// var request = FetchRequest("https://example.org/film")
/// request.staleIfError = .seconds(3600)
/// request.output = .file("/tmp/film")
/// ```
public struct FetchRequest: Sendable {
    /// Where the body goes.
    public enum Output: Sendable, Equatable {
        /// Into ``FetchResponse/body``.
        case memory
        /// Into a file, which is replaced in one step when all of the body is there.
        case file(String)
        /// Into an open descriptor, which stays open; nothing is written before all of the body is there.
        case descriptor(Int32)
    }

    /// `http:` or `https:`.
    ///
    /// A user and a password in it are sent as basic authentication and are no part of the key.
    public var url: String
    /// As it is sent.
    ///
    /// GET and HEAD are answered from the cache; what may change something at the server (POST, PUT …) goes
    /// there, and what is stored for its URL goes.
    public var method: String
    /// Further fields of the head.
    ///
    /// All but a few that are known to be harmless (`Accept`, `Range`, `User-Agent` …) may hold credentials:
    /// `Authorization`, `Cookie`, `X-Api-Key` and any other. Such fields are never stored, go to no other server that a
    /// redirect leads to, and who sends others gets other responses. `Host` must be what the URL says.
    public var fields: [(name: String, value: String)] = []
    /// Names of further ``fields`` that hold no credentials: responses are the same whatever they say, and redirects
    /// take them along to other servers.
    ///
    /// Not `Authorization`, `Proxy-Authorization` or `Cookie`.
    public var plainFields: [String] = []
    /// The body to send.
    public var body: Data?
    /// How to use stored responses.
    public var mode = FetchMode.standard
    /// For how long a response is fresh, whatever it says; nil: for as long as it says.
    public var timeToLive: Duration?
    /// For how long a stale response may take the place of an error, whatever it says (RFC 5861, section 4);
    /// nil: as it says.
    ///
    /// Never one that says `must-revalidate`.
    public var staleIfError: Duration?
    /// For how long a stale response is returned at once and renewed in the background, unless it allows less
    /// (RFC 5861, section 3); nil: as it says.
    public var staleWhileRevalidate: Duration?
    /// The SHA-256 that the body must have, `sha256:` and 64 digits; any other body is an error, and is not
    /// stored.
    public var digest: String?
    /// The most bytes that the body may have; a longer one is an error.
    public var maximumSize: Int64?
    /// For all of it, redirects, waiting and retries included; nil: none.
    public var timeLimit: Duration?
    /// Until a connection is there; nil: that of ``HTTPCacheOptions``.
    public var connectLimit: Duration?
    /// How long there may be not a byte; nil: that of ``HTTPCacheOptions``.
    public var stallLimit: Duration?
    /// How often a GET or HEAD is sent again after a failure that may pass.
    public var retries = 2
    /// Redirects that are followed, of GET and HEAD; each is a response of its own in the cache.
    ///
    /// 0: they are answers.
    public var mostRedirects = 10
    /// Tags by which the stored responses can be removed together.
    public var tags: [String] = []
    /// Where the body of a successful response goes; that of another one is always in memory, as far as 1
    /// MiB.
    public var output = Output.memory
    /// Told about every 100 ms how far the download has got, whoever does it, and at the end.
    public var progress: (@Sendable (FetchProgress) -> Void)?

    /// A request with the defaults.
    public init(_ url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

/// How far a download has got.
public struct FetchProgress: Sendable, Equatable {
    /// Bytes that are there, those of an earlier attempt included.
    public var received: Int64
    /// Of so many, if that is known.
    public var total: Int64?
    /// The process that downloads, if it is another one.
    public var joinedProcess: Int32?

    /// All parameters are what the properties say.
    public init(received: Int64, total: Int64? = nil, joinedProcess: Int32? = nil) {
        self.received = received
        self.total = total
        self.joinedProcess = joinedProcess
    }
}

extension HTTPRequest {
    /// What a caller asks for; user and password of the URL as a field.
    init(_ request: FetchRequest) throws(FetchError) {
        guard let url = HTTPURL(request.url) else {
            throw FetchError(.invalidURL, "not a URL that can be fetched: give one of http or https, escaped")
        }
        guard url.host.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw FetchError(.invalidURL, "a host has letters beyond ASCII: write it as xn--… (IDNA)")
        }
        var fields = HTTPFields()
        for field in request.fields { fields.add(field.name, field.value) }
        // It is part of what is asked for (RFC 9110, section 7.2), and so of the key: there the URL says it.
        let host = url.host + (url.port.map { ":\($0)" } ?? "")
        if let own = fields.first("Host"), HTTPText.lowercased(own) != host {
            throw FetchError(.invalidRequest, "\(url.place): another host as a field: put it into the URL")
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

    /// `user:password` of a URL, decoded; nil where there is none.
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
