// SPDX-License-Identifier: Apache-2.0

import CacheStore
package import DiskCache
import Platform
package import Transport

/// A server of the tier: its client, its latency, and its breaker, which all processes of the machine share.
final class RemoteServer: Sendable {
    let name: String
    let client: any RemoteClient
    let latency = Locked(LatencyHistogram())
    /// The hash that selects the server's word in the control file.
    private let hash: UInt64
    private let terms: CircuitBreaker.Terms
    /// A breaker that opens when the server is full.
    ///
    /// Only this process knows it, which suffices because one process sends at a time. A full server still gets lookups.
    private let room = Locked(CircuitBreaker())
    /// The same for removals: a server without room for a long value may still have room for them.
    private let roomForRemovals = Locked(CircuitBreaker())
    /// A breaker that opens when the server denies changes.
    ///
    /// Only this process knows it, which suffices because one process sends at a time. The server still gets lookups.
    private let leave = Locked(CircuitBreaker())
    /// A breaker that opens when this process can send nothing.
    private let ability = Locked(CircuitBreaker())
    /// Whether the server has answered with a miss for a random key.
    private let isVerified = Locked(false)

    init(_ name: String, _ client: any RemoteClient, _ terms: CircuitBreaker.Terms = CircuitBreaker.Terms()) {
        self.name = name
        self.client = client
        hash = Digest(ofKey: name).word(0) | 1
        self.terms = terms
    }

    /// Returns whether the breaker allows a request now.
    func mayBeAsked(in control: Control) -> Bool {
        let now = Timestamp.monotonicMilliseconds
        guard let word = control.breaker(ofServer: hash), allows(ability, now) else { return false }
        return CircuitBreaker(word: word).asking(at: now, terms).ticket != nil
    }

    private func allows(_ breaker: borrowing Locked<CircuitBreaker>, _ now: UInt64) -> Bool {
        breaker.withLock { $0.asking(at: now, terms).ticket != nil }
    }

    /// Returns whether the breakers allow a change now.
    func mayBeTold(_ work: OutboxRecord.Work, in control: Control) -> Bool {
        let now = Timestamp.monotonicMilliseconds
        guard mayBeAsked(in: control), allows(leave, now) else { return false }
        guard case .put = work else { return allows(roomForRemovals, now) }
        return allows(room, now)
    }

    /// Returns the state of the breaker: "closed", "open" or "probing".
    func phase(in control: Control) -> String {
        switch CircuitBreaker(word: control.breaker(ofServer: hash) ?? 0).phase {
        case .closed: "closed"
        case .open: "open"
        case .probing: "probing"
        }
    }

    /// Sends a request, unless a breaker is open, and counts the outcome for the breakers.
    ///
    /// - Parameter denial: What a denied request counts as.
    func request<Value>(
        in store: Store,
        denial: CircuitBreaker.Verdict = .fault,
        _ body: () throws(RemoteFailure) -> Value
    ) throws(RemoteFailure) -> Value {
        try attempt(ability, .unable, "this process could not send a moment ago") {
            () throws(RemoteFailure) in
            try judging(in: store, denial, body)
        }
    }

    private func judging<Value>(
        in store: Store,
        _ denial: CircuitBreaker.Verdict,
        _ body: () throws(RemoteFailure) -> Value
    ) throws(RemoteFailure) -> Value {
        guard let ticket = ticket(in: store.control) else {
            throw RemoteFailure(.skipped, "\(name): not contacted: its circuit breaker is open")
        }
        let start = ContinuousClock.now
        do throws(RemoteFailure) {
            let value = try body()
            latency.withLock { $0.record(nanoseconds: (.now - start).saturatingNanoseconds) }
            judge(.prompt, ticket, in: store.control)
            return value
        } catch {
            switch error.kind {
            // The server has answered in time.
            case .refused, .wrong, .tooLong, .skipped, .full: judge(.prompt, ticket, in: store.control)
            case .slow, .failed: judge(.fault, ticket, in: store.control)
            // All processes share this breaker. If this was the probe, its time limit passes, and another one is sent.
            case .unable: break
            case .denied: judge(denial, ticket, in: store.control)
            }
            if error.kind == .wrong { isVerified.withLock { $0 = false } }
            count(error, in: store)
            throw error
        }
    }

    /// Sends a request that needs room on the server, unless the server was full a moment ago.
    ///
    /// - Parameter isRemoval: Whether it needs only as much room as a removal.
    func store(
        isRemoval: Bool,
        in store: Store,
        until deadline: ContinuousClock.Instant,
        _ body: () throws(RemoteFailure) -> Void
    ) throws(RemoteFailure) {
        func send() throws(RemoteFailure) { try change(in: store, until: deadline, body) }
        let words = "it was full a moment ago"
        if isRemoval {
            try attempt(roomForRemovals, .full, words, send)
        } else {
            try attempt(room, .full, words, send)
        }
    }

    /// Sends a request that changes an entry, unless the server denied such a request a moment ago.
    func change(
        in store: Store,
        until deadline: ContinuousClock.Instant,
        _ body: () throws(RemoteFailure) -> Void
    ) throws(RemoteFailure) {
        try verify(in: store, until: deadline)
        try attempt(leave, .denied, "it was denied a moment ago") { () throws(RemoteFailure) in
            try request(in: store, denial: .prompt, body)
        }
    }

    /// Verifies, once per server, that it answers with a miss for a random key.
    ///
    /// A server that answers every request with success (a login page, a wrong address) would seem to have stored all
    /// values.
    private func verify(in store: Store, until deadline: ContinuousClock.Instant) throws(RemoteFailure) {
        if isVerified.withLock({ $0 }) { return }
        let nobodys = Digest(ofKey: "verification \(UInt64.random(in: 0 ... .max))", in: .upkeep)
        try request(in: store) { () throws(RemoteFailure) in
            var isThere = true
            do throws(RemoteFailure) {
                isThere = try client.get(nobodys, until: deadline) != nil
            } catch {
                switch error.kind {
                case .wrong, .tooLong: break
                // A server that refuses lookups returns no values, which is equivalent to a miss.
                case .refused: isThere = false
                default: throw error
                }
            }
            if isThere { throw RemoteFailure(.failed, "\(name): it has an object that was never stored") }
        }
        isVerified.withLock { $0 = true }
    }

    /// Runs `body`, unless a request failed in this way recently.
    private func attempt<Value>(
        _ breaker: borrowing Locked<CircuitBreaker>,
        _ kind: RemoteFailure.Kind,
        _ words: String,
        _ body: () throws(RemoteFailure) -> Value
    ) throws(RemoteFailure) -> Value {
        let begin = Timestamp.monotonicMilliseconds
        let ticket = breaker.withLock { breaker in
            let (ticket, next) = breaker.asking(at: begin, terms)
            breaker = next
            return ticket
        }
        guard let ticket else { throw RemoteFailure(.skipped, "\(name): \(words)") }
        func judge(_ verdict: CircuitBreaker.Verdict) {
            let end = Timestamp.monotonicMilliseconds
            breaker.withLock { $0 = $0.judged(verdict, ticket, at: end, terms) }
        }
        do throws(RemoteFailure) {
            let value = try body()
            judge(.prompt)
            return value
        } catch {
            if error.kind == kind { judge(.fault) }
            throw error
        }
    }

    private func count(_ error: RemoteFailure, in store: Store) {
        switch error.kind {
        case .slow: store.counters.add(.remoteSlow)
        case .failed, .unable, .denied, .refused, .full: store.counters.add(.remoteError)
        case .wrong, .tooLong, .skipped: break
        }
    }

    private func ticket(in control: Control) -> CircuitBreaker.Ticket? {
        while true {
            guard let word = control.breaker(ofServer: hash) else { return nil }
            let breaker = CircuitBreaker(word: word)
            let (ticket, next) = breaker.asking(at: Timestamp.monotonicMilliseconds, terms)
            let isSame = next.word == word
            if isSame || control.replaceBreaker(ofServer: hash, word, by: next.word) { return ticket }
        }
    }

    private func judge(
        _ verdict: CircuitBreaker.Verdict,
        _ ticket: CircuitBreaker.Ticket,
        in control: Control
    ) {
        while true {
            guard let word = control.breaker(ofServer: hash) else { return }
            let now = Timestamp.monotonicMilliseconds
            let next = CircuitBreaker(word: word).judged(verdict, ticket, at: now, terms)
            if next.word == word || control.replaceBreaker(ofServer: hash, word, by: next.word) { return }
        }
    }
}

/// The servers that share the values of one level.
struct RemoteLevel: Sendable {
    let servers: [RemoteServer]
    private let rendezvous: Rendezvous

    /// Creates a level.
    ///
    /// - Parameter weights: The weight of each server, in the same order.
    init(_ servers: [RemoteServer], weights: [Double]) {
        self.servers = servers
        rendezvous = Rendezvous(servers.map(\.name), weights: weights)
    }

    /// Returns the server that stores the value of a key, or nil if all weights are 0.
    func server(for key: Digest) -> RemoteServer? { rendezvous.server(for: key).map { servers[$0] } }
}

extension RemoteServer {
    /// Creates a server from its configuration.
    convenience init(
        _ server: CacheConfiguration.Remote.Server,
        _ configuration: CacheConfiguration.Remote,
        _ credentials: RemoteCredentials,
        over transport: Transport,
        _ terms: CircuitBreaker.Terms
    ) throws(CacheError) {
        do throws(ConfigurationFault) {
            try configuration.check()
            let address = try RemoteAddress(server.url)
            let client = try Self.client(address, server, configuration, credentials, over: transport)
            self.init(address.name, client, terms)
        } catch {
            throw error.error
        }
    }

    private static func client(
        _ address: RemoteAddress,
        _ server: CacheConfiguration.Remote.Server,
        _ configuration: CacheConfiguration.Remote,
        _ credentials: RemoteCredentials,
        over transport: Transport
    ) throws(ConfigurationFault) -> any RemoteClient {
        let entry = credentials.entry(for: address)
        let security = configuration.security
        // No value is longer than this, and sums of lengths don't overflow.
        let longest = min(configuration.maximumSize, Int64.max / 2)
        if address.scheme.hasPrefix("redis") {
            let namespace = configuration.namespace
            return RedisStore(address, namespace: namespace, as: entry, security, longest: longest)
        }
        var identity = HTTPStore.Identity.anybody
        if server.kind == .s3 {
            guard let entry else {
                throw ConfigurationFault(key: "credentials", words: "\(address.name): S3 needs them")
            }
            identity = .signed(SignatureV4(credentials: entry, region: server.region ?? "us-east-1"))
        } else if let entry {
            identity = .basic(TransportCredentials(user: entry.user, password: entry.secret))
        }
        let form: HTTPStore.Form = configuration.format == .action ? .action : .plain
        let paths = try configuration.paths
        return HTTPStore(
            address: address,
            paths: paths,
            form: form,
            identity: identity,
            security: security,
            longest: longest,
            transport: transport
        )
    }
}

extension RemoteAddress {
    /// Returns the socket to connect to.
    ///
    /// - Parameter security: The TLS settings, used for `rediss` only.
    func place(_ security: TransportSecurity) -> SocketPlace {
        let security = scheme == "rediss" ? security : nil
        return socketPath.map { .path($0) } ?? .network(host: host, port: port, security: security)
    }
}

extension CacheConfiguration.Remote {
    /// The trusted certificate authorities, and the client certificate.
    package var security: TransportSecurity {
        TransportSecurity(
            authorityFile: authorityFile,
            certificateFile: certificateFile,
            keyFile: certificateKeyFile
        )
    }
}
