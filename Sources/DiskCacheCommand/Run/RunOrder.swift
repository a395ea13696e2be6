// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// What a command line of `run` requests.
struct RunOrder {
    /// The name of ``RefreshCommand``.
    static let refreshCommand = "run-refresh"

    /// The key; empty if it could not be determined.
    let key: String
    /// Why the key could not be determined: one of its inputs can't be read.
    let obstacle: Failure?
    /// The command and its arguments, as bytes.
    let words: [[UInt8]]
    /// How long a result is valid: ``Expiration/after(_:)`` or ``Expiration/never``.
    let lifetime: Expiration
    /// How long after expiration the result is still returned, while it is renewed in the background.
    let staleFor: Duration?
    /// How long a failure is valid; nil if failures must not be stored.
    let failures: Expiration?
    let isForced: Bool
    /// How long to wait for another process that runs the command; nil to wait without limit.
    let waitLimit: Duration?
    /// Whether to print no output.
    var isSilent: Bool

    init(_ arguments: Arguments) throws(Failure) {
        if arguments.operands.isEmpty {
            throw .usage("run: missing operand: give CMD after --; see `diskcache run --help`")
        }
        words = arguments.commandLine
        var obstacle: Failure?
        var (key, lifetime) = ("", try arguments.value("ttl", as: Self.lifetime))
        do throws(Failure) {
            key = try Self.key(arguments)
        } catch {
            // A mistake on the command line is an error; other errors must not prevent CMD from running.
            if error.status == .usage { throw error }
            obstacle = error
        }
        do throws(Failure) {
            key = try arguments.scope() + key
            if lifetime == nil { lifetime = try ExpirationOptions.usual(as: Self.lifetime) }
        } catch {
            // A mistake in the environment must not prevent CMD from running either.
            obstacle = obstacle ?? error
        }
        self.obstacle = obstacle
        self.key = obstacle == nil ? key : ""
        self.lifetime = lifetime ?? .after(.seconds(60))
        staleFor = try arguments.value("stale", as: Self.span)
        if staleFor != nil, self.lifetime == .never {
            throw .usage("run: --stale needs results that expire: give --ttl a time span instead of never")
        }
        // The option was given without a value if the text is empty.
        let isAsLong = arguments.value("cache-failures") == ""
        failures = try isAsLong ? self.lifetime : arguments.value("cache-failures", as: Self.lifetime)
        isForced = arguments.has("force")
        waitLimit = try arguments.value("wait", as: Quantity.duration)
        isSilent = arguments.has("warm")
    }

    /// Returns the key without its scope.
    private static func key(_ arguments: Arguments) throws(Failure) -> String {
        guard let key = arguments.value("key") else { return try RunKey(arguments).text }
        try arguments.check(key)
        for option in ["env", "cwd", "modtime", "hash"] where arguments.has(option) {
            throw .usage("run: --key and --\(option) can't be used together: KEY is the whole key: give one")
        }
        return key
    }

    private static func lifetime(_ text: String) throws(Failure) -> Expiration {
        guard case .after = try ExpirationOptions.lifetime(text) else { return .never }
        return .after(try span(text))
    }

    private static func span(_ text: String) throws(Failure) -> Duration {
        let span = try Quantity.duration(text)
        if span == .zero { throw .usage("invalid lifetime \(text): give more than 0") }
        return span
    }

    /// How a stored result may be used.
    enum Verdict: Equatable {
        case fresh, stale, useless
    }

    /// Judges a stored result by its age, and by the options with which it was stored.
    ///
    /// Both must allow its use.
    func judge(_ entry: CacheEntry, status: Int32, now: Date = .now) -> Verdict {
        guard let lifetime = status == 0 ? lifetime : failures else { return .useless }
        let age = Duration.seconds(now.timeIntervalSince(entry.created))
        let isExpired = entry.expires.map { $0 <= now } ?? false
        guard case .after(let longest) = lifetime else { return isExpired ? .useless : .fresh }
        if age < longest, !isExpired { return .fresh }
        guard let staleFor, status == 0, age < longest + staleFor else { return .useless }
        return .stale
    }

    /// Returns the options for storing a result with this exit status; nil if it must not be stored.
    func options(status: Int32, computeTime: Duration) -> PutOptions? {
        guard let lifetime = status == 0 ? lifetime : failures else { return nil }
        var options = PutOptions(computeTime: computeTime, contentType: RecordingFormat.contentType)
        options.expires = lifetime
        if status == 0 { options.staleFor = staleFor }
        return options
    }

    /// Returns the command line of the process that renews this result, in `directory`.
    func refreshing(in directory: String, _ arguments: Arguments) -> [[UInt8]] {
        var words = [CurrentProcess.executable, "--dir", directory, Self.refreshCommand]
        // The key already includes the scope, but the environment may set another one.
        words += ["--key", key, "--scope", ""]
        for option in ["ttl", "stale"] {
            if let value = arguments.value(option) { words += ["--\(option)", value] }
        }
        if let span = arguments.value("cache-failures") {
            words.append(span.isEmpty ? "--cache-failures" : "--cache-failures=\(span)")
        }
        return (words + ["--"]).map(\.pathBytes) + self.words
    }
}
