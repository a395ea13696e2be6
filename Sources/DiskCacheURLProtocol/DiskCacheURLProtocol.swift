// SPDX-License-Identifier: Apache-2.0

public import DiskCacheHTTP
import Foundation
import Platform

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Gives code that uses `URLSession` the shared cache, by one line.
///
/// ```swift
/// DiskCacheURLProtocol.use(HTTPCache(cache), in: configuration)
/// ```
///
/// Requests by GET and HEAD without a body are answered as ``HTTPCache`` answers them, with the fields of the session
/// (`httpAdditionalHeaders`) and those of the request, which win. Redirects are followed there, the body comes in one
/// piece, and the session's own cache keeps none of it. A body arrives as the server sent it: this asks for no
/// compression and decodes none. Cookies of responses are not added to the session's.
///
/// All other requests are left to the session. They invalidate nothing in the cache: after a POST, PUT or DELETE
/// remove the responses that it has changed, by the prefix `http GET ` and the URL (`SharedCache.removeAll(_:)`).
public class DiskCacheURLProtocol: URLProtocol {
    /// The caches by the class that sessions have for them.
    private static let servedBy = Locked<[ObjectIdentifier: Served]>([:])
    private let state = Locked(State.waiting)

    /// Whichever comes first, the response or being stopped, tells the client, which would take both.
    private enum State {
        case waiting
        case fetching(Task<Void, Never>)
        case stopped
        case answered

        var isAnswered: Bool { if case .answered = self { true } else { false } }
    }

    /// The cache of sessions, and their fields.
    private struct Served: @unchecked Sendable {
        let cache: HTTPCache
        /// Nobody changes it while sessions use it.
        let configuration: URLSessionConfiguration
    }

    /// Sessions made with `configuration` from now on use `cache`.
    ///
    /// Their fields are those that `configuration` has when a request begins. Each call adds a class to the protocols of
    /// the configuration, which the process keeps, with the cache.
    public static func use(_ cache: HTTPCache, in configuration: URLSessionConfiguration) {
        let protocolClass = servedBy.withLock { served in
            let protocolClass = SessionProtocol<Zero>.numbered(served.count + 1)
            served[ObjectIdentifier(protocolClass)] = Served(cache: cache, configuration: configuration)
            return protocolClass
        }
        configuration.protocolClasses = [protocolClass] + (configuration.protocolClasses ?? [])
    }

    private class var served: Served? { servedBy.withLock { $0[ObjectIdentifier(self)] } }

    /// Whether a request is answered here.
    override public class func canInit(with request: URLRequest) -> Bool {
        let (scheme, method) = (request.url?.scheme?.lowercased(), request.httpMethod ?? "GET")
        let isPlain =
            (method == "GET" || method == "HEAD") && request.httpBodyStream == nil && request.httpBody == nil
        return isPlain && (scheme == "http" || scheme == "https") && served != nil
    }

    /// The request as it is.
    override public class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Begins to fetch.
    override public func startLoading() {
        guard let served = Self.served, let wanted = FetchRequest(request, in: served.configuration) else {
            client?.urlProtocol(self, didFailWithError: URLError(.badURL))
            return
        }
        let loading = Loading(this: self)
        state.withLock { state in
            // It may have been stopped before it began.
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

    /// Ends at once.
    override public func stopLoading() {
        state.withLock { state in
            if case .fetching(let task) = state { task.cancel() }
            if !state.isAnswered { state = .stopped }
        }
    }

    /// Whom to tell; nil once that has begun.
    ///
    /// A session that is cancelled tells it by itself, even if it has been told a moment ago.
    override public var client: (any URLProtocolClient)? {
        get { state.withLock(\.isAnswered) ? nil : super.client }
        set { super.client = newValue }
    }

    /// For the task, which is alone with it from the beginning to the end.
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

/// Numbers as types: a session tells its protocol only by its class.
private enum Zero {}
private enum Doubled<Number> {}
private enum DoubledAndOne<Number> {}

private final class SessionProtocol<Number>: DiskCacheURLProtocol {
    /// Another class for each number.
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
        // An infinite or very long limit, or one that is no number, is never reached.
        let seconds = request.timeoutInterval
        stallLimit = .seconds(abs(seconds) < 1e9 ? seconds : 1e9)
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
