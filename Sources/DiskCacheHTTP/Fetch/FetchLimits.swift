// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials

/// The policy and the limits of a fetch and its redirects: the options of the request, with the cache's options as
/// defaults.
struct FetchLimits: Sendable {
    private(set) var policy: HTTPCachePolicy
    /// The time at which the caller's time limit ends; nil without a limit.
    private(set) var deadline: ContinuousClock.Instant?
    let stallLimit: Duration
    let connectLimit: Duration
    let mostBytes: Int
    let digest: Digest?
    private let retries: Int
    private let authorityFile: String?
    private let isReload: Bool
    /// How many seconds after expiration the caller accepts a stale response instead of an error, whatever the response
    /// allows.
    private let staleIfError: Int?

    init(_ request: FetchRequest, _ options: HTTPCacheOptions) throws(FetchError) {
        var policy = HTTPCachePolicy()
        if !options.usesHeuristics { policy.heuristic = .none }
        policy.lifetime = request.timeToLive.map(Self.seconds)
        staleIfError = request.staleIfError.map(Self.seconds)
        policy.staleIfError.most = staleIfError ?? Self.seconds(options.mostStaleIfError)
        if let span = request.staleWhileRevalidate.map(Self.seconds) {
            policy.staleWhileRevalidate = HTTPCachePolicy.Allowance(unasked: span, most: span)
        }
        self.policy = policy
        deadline = request.timeLimit.map { ContinuousClock.now + min(max($0, .zero), .seconds(1 << 30)) }
        stallLimit = request.stallLimit ?? options.stallLimit
        connectLimit = request.connectLimit ?? options.connectLimit
        isReload = request.mode == .reload
        (retries, authorityFile) = (request.retries, options.authorityFile)
        mostBytes = Int(clamping: max(0, request.maximumSize ?? .max))
        digest = try request.digest.map(Self.digest)
    }

    /// Converts to whole seconds; a positive time of less than a second becomes 1.
    private static func seconds(_ span: Duration) -> Int {
        let (seconds, rest) = span.components
        return max(0, Int(clamping: seconds) + (rest > 0 && seconds == 0 ? 1 : 0))
    }

    private static func digest(_ text: String) throws(FetchError) -> Digest {
        let name = "sha256:"
        let digits = text.hasPrefix(name) ? text.dropFirst(name.utf8.count) : ""
        guard let digest = Digest(hexadecimal: digits.lowercased()) else {
            throw FetchError(.invalidRequest, "not a digest: \(text.prefix(80)): give sha256: and 64 digits")
        }
        return digest
    }

    /// A text of all options, except ``deadline``, that can make a download fail for one caller but not for another.
    ///
    /// Callers with equal terms get the same error.
    var terms: String {
        let file = authorityFile?.replacing("\n", with: " ") ?? ""
        return
            "\(mostBytes) \(retries) \(stallLimit) \(connectLimit) \(digest.map { "\($0)" } ?? "-") \(file)"
    }

    /// Returns the terms of the callers whose downloads would fail in the same way; nil if only this one's would.
    func terms(sharing error: FetchError) -> String? {
        // Others may have other fields.
        if error.code == .invalidRequest || error.isCutShort || left == .zero { return nil }
        return terms
    }

    /// The time left until the deadline; nil without a deadline.
    var left: Duration? { deadline.map { max(.zero, $0 - .now) } }

    /// Checks the deadline and whether the task was cancelled.
    ///
    /// - Throws: ``FetchError`` if no time is left, `CancellationError`.
    func check(_ asked: HTTPRequest) throws {
        try Task.checkCancellation()
        if left == .zero { throw FetchError(.timedOut, "\(asked.url.place): not done in time") }
    }

    /// Returns the limits for a background revalidation, which no caller waits for.
    func renewing() -> FetchLimits {
        var limits = self
        limits.policy.staleWhileRevalidate = HTTPCachePolicy.Allowance(unasked: 0, most: 0)
        limits.deadline = nil
        return limits
    }

    /// Returns the request with the caller's options expressed as directives of RFC 9111 and RFC 5861.
    func judged(_ request: HTTPRequest) -> HTTPRequest {
        var judged = request
        if isReload { judged.fields.add("Cache-Control", "no-cache") }
        if let staleIfError { judged.fields.add("Cache-Control", "stale-if-error=\(staleIfError)") }
        return judged
    }
}
