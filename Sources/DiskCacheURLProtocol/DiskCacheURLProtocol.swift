// SPDX-License-Identifier: Apache-2.0

public import DiskCacheHTTP
import Foundation
import Platform

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A `URLProtocol` that answers the requests of a `URLSession` from the shared cache.
///
/// ```swift
/// DiskCacheURLProtocol.use(HTTPCache(cache), in: configuration)
/// ```
///
/// ``HTTPCache`` answers GET and HEAD requests without a body. They have the header fields of the session
/// (`httpAdditionalHeaders`) and those of the request, which take precedence. ``HTTPCache`` follows redirects. The body
/// arrives in one piece, as the server sent it: no compression is requested or decoded. The session's own cache does not
/// store it. Cookies of responses are not added to the session's cookies.
///
/// The session itself handles all other requests. They invalidate nothing in the cache: after a POST, PUT or DELETE, remove
/// the stored responses that it has made obsolete, by the prefix `http GET ` and the URL (`SharedCache.removeAll(_:)`).
public class DiskCacheURLProtocol: URLProtocol {
    /// The caches and configurations, by the protocol class of their sessions.
    private static let servedBy = Locked<[ObjectIdentifier: Served]>([:])
    private let state = Locked(State.waiting)

    /// The state of a request.
    ///
    /// Either the response or the stop takes effect, whichever comes first: the client would accept a response after the
    /// stop.
    private enum State {
        case waiting
        case fetching(Task<Void, Never>)
        case stopped
        case answered

        var isAnswered: Bool { if case .answered = self { true } else { false } }
    }

    /// A cache, and the configuration of the sessions that use it.
    private struct Served: @unchecked Sendable {
        let cache: HTTPCache
        /// For the header fields; not changed while sessions use it.
        let configuration: URLSessionConfiguration
    }

    /// Makes `cache` serve all sessions that are created with `configuration` from now on.
    ///
    /// A request has the header fields that `configuration` has when the request begins. Each call adds a class to the
    /// protocol classes of the configuration; the process keeps the class and the cache until it ends.
    public static func use(_ cache: HTTPCache, in configuration: URLSessionConfiguration) {
        let protocolClass = servedBy.withLock { served in
            let protocolClass = SessionProtocol<Zero>.numbered(served.count + 1)
            served[ObjectIdentifier(protocolClass)] = Served(cache: cache, configuration: configuration)
            return protocolClass
        }
        configuration.protocolClasses = [protocolClass] + (configuration.protocolClasses ?? [])
    }

    private class var served: Served? { servedBy.withLock { $0[ObjectIdentifier(self)] } }

    /// Returns whether a request is answered from the cache.
    override public class func canInit(with request: URLRequest) -> Bool {
        let (scheme, method) = (request.url?.scheme?.lowercased(), request.httpMethod ?? "GET")
        let isPlain =
            (method == "GET" || method == "HEAD") && request.httpBodyStream == nil && request.httpBody == nil
        return isPlain && (scheme == "http" || scheme == "https") && served != nil
    }

    /// Returns the request unchanged.
    override public class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Begins the fetch.
    override public func startLoading() {
        guard let served = Self.served, let wanted = FetchRequest(request, in: served.configuration) else {
            client?.urlProtocol(self, didFailWithError: URLError(.badURL))
            return
        }
        let loading = Loading(this: self)
        state.withLock { state in
            // The request may have been stopped before it began.
            guard case .waiting = state else { return }
            let task = Task.detached {
                let result: Result<FetchResponse, any Error>
                do {
                    result = .success(try await served.cache.fetch(wanted))
                } catch {
                    result = .failure(error)
                }
                loading.this.finish(result)
            }
            state = .fetching(task)
        }
    }

    /// Cancels the fetch.
    override public func stopLoading() {
        state.withLock { state in
            if case .fetching(let task) = state { task.cancel() }
            if !state.isAnswered { state = .stopped }
        }
    }

    /// The client to notify; nil once the response or the error is being delivered.
    ///
    /// A session that is cancelled notifies the client itself, even if the client was notified a moment ago.
    override public var client: (any URLProtocolClient)? {
        get { state.withLock(\.isAnswered) ? nil : super.client }
        set { super.client = newValue }
    }

    /// Passes the protocol object to the task, which has exclusive use of it until it ends.
    private struct Loading: @unchecked Sendable {
        let this: DiskCacheURLProtocol
    }

    private func finish(_ result: Result<FetchResponse, any Error>) {
        let client = client
        let isStopped = state.withLock { state in
            guard case .fetching = state else { return true }
            state = .answered
            return false
        }
        if isStopped { return }
        switch result {
        case .success(let response): finish(response, client)
        case .failure(let error): client?.urlProtocol(self, didFailWithError: URLError(error))
        }
    }

    private func finish(_ response: FetchResponse, _ client: (any URLProtocolClient)?) {
        var fields: [String: String] = [:]
        for field in response.fields {
            fields[field.name] = fields[field.name].map { "\($0), \(field.value)" } ?? field.value
        }
        guard let url = URL(string: response.url),
            let head = HTTPURLResponse(
                url: url,
                statusCode: response.status,
                httpVersion: "HTTP/1.1",
                headerFields: fields
            )
        else {
            client?.urlProtocol(self, didFailWithError: URLError(.badServerResponse))
            return
        }
        client?.urlProtocol(self, didReceive: head, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: response.body)
        client?.urlProtocolDidFinishLoading(self)
    }
}

/// Numbers as types: a session identifies its protocol only by the class, so each configuration needs another class.
private enum Zero {}
private enum Doubled<Number> {}
private enum DoubledAndOne<Number> {}

private final class SessionProtocol<Number>: DiskCacheURLProtocol {
    /// Returns a different class for each number.
    static func numbered(_ number: Int) -> DiskCacheURLProtocol.Type {
        if number == 0 { return SessionProtocol<Number>.self }
        return number.isMultiple(of: 2)
            ? SessionProtocol<Doubled<Number>>.numbered(number / 2)
            : SessionProtocol<DoubledAndOne<Number>>.numbered(number / 2)
    }
}

extension FetchRequest {
    fileprivate init?(_ request: URLRequest, in configuration: URLSessionConfiguration) {
        guard let url = request.url?.absoluteString else { return nil }
        self.init(url, method: request.httpMethod ?? "GET")
        let own = request.allHTTPHeaderFields ?? [:]
        let names = Set(own.keys.map { $0.lowercased() })
        let common = (configuration.httpAdditionalHeaders ?? [:]).map { ("\($0.key.base)", "\($0.value)") }
        fields = own.map { ($0.key, $0.value) } + common.filter { !names.contains($0.0.lowercased()) }
        // No limit, an infinite or a very long one, or NaN, is never reached.
        let seconds = request.timeoutInterval
        stallLimit = .seconds(seconds > 0 && seconds < 1e9 ? seconds : 1e9)
        switch request.cachePolicy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: mode = .reload
        case .returnCacheDataElseLoad: mode = .cacheFirst
        case .returnCacheDataDontLoad: mode = .offline
        case .reloadRevalidatingCacheData: mode = .revalidate
        default: mode = .standard
        }
    }
}

extension URLError {
    fileprivate init(_ error: any Error) {
        let code: URLError.Code =
            switch (error as? FetchError)?.code {
            case .invalidURL, .invalidRequest: .badURL
            case .unreachable: .cannotConnectToHost
            case .tls: .secureConnectionFailed
            case .timedOut: .timedOut
            case .truncated: .networkConnectionLost
            case .tooLarge: .dataLengthExceedsMaximum
            case .tooManyRedirects, .unsupportedRedirect: .httpTooManyRedirects
            case .protocolViolation: .badServerResponse
            default: .unknown
            }
        self.init(code, userInfo: [NSLocalizedDescriptionKey: "\(error)"])
    }
}
