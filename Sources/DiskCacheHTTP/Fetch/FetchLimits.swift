// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials

/// What a fetch is held to, redirects included: the policy with the caller's wishes, and limits.
struct FetchLimits: Sendable {
    private(set) var policy: HTTPCachePolicy
    /// When the caller's time is over.
    private(set) var deadline: ContinuousClock.Instant?
    let stallLimit: Duration
    let connectLimit: Duration
    let mostBytes: Int
    let digest: Digest?
    private let retries: Int
    private let authorityFile: String?
    private let isReload: Bool
    /// Seconds for which the caller takes something stale in the place of an error, whatever it says.
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

    /// Whole seconds, at least one of any time at all.
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

    /// All by which a download may fail for one caller and not for another, but for ``deadline``: who has the same
    /// would have met the same error.
    var terms: String {
        let file = authorityFile?.replacing("\n", with: " ") ?? ""
        return
            "\(mostBytes) \(retries) \(stallLimit) \(connectLimit) \(digest.map { "\($0)" } ?? "-") \(file)"
    }

    /// The time until the limit.
    var left: Duration? { deadline.map { max(.zero, $0 - .now) } }

    /// - Throws: ``FetchError`` where there is no time left, `CancellationError`.
    func check(_ asked: HTTPRequest) throws {
        try Task.checkCancellation()
        if left == .zero { throw FetchError(.timedOut, "\(asked.url.place): not done in time") }
    }

    /// Those of a renewal in the background, for which nobody waits.
    func renewing() -> FetchLimits {
        var limits = self
        limits.policy.staleWhileRevalidate = HTTPCachePolicy.Allowance(unasked: 0, most: 0)
        limits.deadline = nil
        return limits
    }

    /// The request with what the caller says beside its fields, in the words of RFC 9111 and RFC 5861.
    func judged(_ request: HTTPRequest) -> HTTPRequest {
        var judged = request
        if isReload { judged.fields.add("Cache-Control", "no-cache") }
        if let staleIfError { judged.fields.add("Cache-Control", "stale-if-error=\(staleIfError)") }
        return judged
    }
}
