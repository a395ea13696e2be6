// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform
import Transport

/// A server that stores bodies at paths, with GET, PUT and DELETE.
///
/// With Bazel's HTTP cache protocol, a lookup takes one round trip if the value is inlined in its entry, else two.
struct HTTPStore: RemoteClient {
    /// How the client authenticates itself.
    enum Identity: Sendable {
        case anybody
        case basic(TransportCredentials)
        case signed(SignatureV4)
    }

    /// The format of entries on the server.
    enum Form: Sendable {
        case action
        case plain
    }

    let address: RemoteAddress
    let paths: RemotePaths
    let form: Form
    let identity: Identity
    let security: TransportSecurity
    /// The maximum length of a value in bytes.
    let longest: Int64
    let transport: Transport

    // MARK: Entries

    func get(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) -> RemoteEntry? {
        guard let body = try fetch(paths.entry(key), until: deadline) else { return nil }
        if form == .plain {
            guard let parcel = Envelope.open(body, for: key) else { throw wrong() }
            return parcel
        }
        let action = try read(body)
        // Other clients of the server may store entries of another kind here.
        guard !action.record.isEmpty else { throw wrong() }
        var parcel = RemoteEntry(record: action.record, bytes: Data(), digest: action.digest)
        if let contents = action.contents {
            parcel.bytes = Data(contents)
        } else {
            guard Int64(action.length) <= longest else { return nil }
            // The server may delete the content before the entry.
            guard let bytes = try fetch(paths.content(action.digest), until: deadline) else {
                return nil
            }
            guard bytes.count == action.length else { throw wrong() }
            parcel.bytes = bytes
        }
        return parcel
    }

    private func read(_ body: Data) throws(RemoteFailure) -> ActionResult {
        do throws(WireFault) {
            return try ActionResult(decoding: [UInt8](body))
        } catch {
            throw wrong()
        }
    }

    private func wrong() -> RemoteFailure {
        RemoteFailure(.wrong, "\(address.name) returned data that is not an entry")
    }

    func putIfNewer(
        _ key: Digest,
        _ parcel: RemoteEntry,
        onlyReplacing: Bool,
        upTo latest: ChangeVersion,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> ChangeVersion? {
        let version = parcel.version(of: key)
        var isContentStored = false
        var (conflict, isFolderMissing) = (0, false)
        for _ in 0..<Self.attempts {
            let present = try find(key, until: deadline)
            if present == nil, onlyReplacing { return ChangeVersion.none }
            if let present, present.version >= version,
                !present.version.isUnusable(after: max(version, latest), time: { present.time })
            {
                return present.version
            }
            let condition = present.map(\.condition) ?? HeaderField("If-None-Match", "*")
            let body = entry(for: parcel)
            if !isContentStored, let content = content(of: parcel) {
                // The content must be stored before the entry that refers to it.
                try store(content, parcel.digest, at: paths.content(parcel.digest), until: deadline)
                isContentStored = true
            }
            let found = try store(
                body,
                Digest(of: body.span),
                at: paths.entry(key),
                if: condition,
                until: deadline
            )
            guard let found else { return nil }
            // S3 answers 409 if another client stores the object at this moment, WebDAV if a folder is missing.
            (conflict, isFolderMissing) = (found, found == 409 && present == nil && !isSigned)
        }
        // Otherwise other clients change the entry again and again.
        let kind: RemoteFailure.Kind = isFolderMissing ? .refused : .failed
        throw RemoteFailure(kind, "\(address.name): PUT: status \(conflict)")
    }

    /// The entry of a key on the server.
    private struct Present {
        /// None if it is something else.
        let version: ChangeVersion
        /// The condition that it is still the same (RFC 9110, section 13.1.1); nil if it has no strong entity tag.
        ///
        /// A server that does not support conditions ignores the field.
        let condition: HeaderField?
        /// The time on the server.
        let time: Timestamp?

        init(_ version: ChangeVersion, _ response: TransportResponse?) {
            self.version = version
            time = response?.date
            let tags = response?.values("etag") ?? []
            let isStrong = tags.count == 1 && tags[0].hasPrefix("\"")
            condition = isStrong ? HeaderField("If-Match", tags[0]) : nil
        }
    }

    /// Returns the present entry; nil if nothing is there.
    private func find(
        _ key: Digest,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> Present? {
        // The record is at the beginning of the body. A server may ignore the field and send the whole body.
        let range = HeaderField("Range", "bytes=0-\(Envelope.longestBeginning - 1)")
        let response: TransportResponse
        do throws(RemoteFailure) {
            response = try send(
                "GET",
                paths.entry(key),
                fields: form == .plain ? [range] : [],
                until: deadline
            )
        } catch {
            // Whatever is there, this machine can't read it.
            if error.kind == .tooLong { return Present(.none, nil) }
            throw error
        }
        switch response.status {
        case 404, 410: return nil
        // S3 returns 403 for a missing object if the client may not list objects.
        case 403 where isSigned: return nil
        // Unlike a lookup, a change waits until it is allowed.
        case 403: throw RemoteFailure(.denied, "\(address.name): GET: status 403")
        // An empty body.
        case 416: return Present(.none, response)
        default: try check(response, "GET")
        }
        let record =
            form == .plain
            ? Envelope.record(in: response.body.span)?.bytes
            : (try? ActionResult(decoding: [UInt8](response.body)))?.record
        return Present(record.flatMap { Record(decoding: $0, for: key) }?.version ?? .none, response)
    }

    /// How often a change is compared with the present entry, if other clients change that meanwhile.
    private static let attempts = 10

    private func entry(for parcel: RemoteEntry) -> Data {
        if form == .plain { return Data(Envelope.seal(parcel)) }
        let action = ActionResult(
            digest: parcel.digest,
            length: parcel.bytes.count,
            contents: content(of: parcel) == nil ? [UInt8](parcel.bytes) : nil,
            record: parcel.record
        )
        return Data(action.encoded())
    }

    /// The value, if it is stored beside its entry.
    private func content(of parcel: RemoteEntry) -> Data? {
        form == .plain || parcel.bytes.count <= ActionResult.inlineLimit ? nil : parcel.bytes
    }

    private var isSigned: Bool { if case .signed = identity { true } else { false } }

    func remove(_ key: Digest, until deadline: ContinuousClock.Instant) throws(RemoteFailure) {
        try delete(paths.entry(key), until: deadline)
    }

    // MARK: Requests

    /// Returns the body at a path, or nil if it is missing.
    private func fetch(
        _ path: String,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> Data? {
        let response = try send("GET", path, until: deadline)
        if response.status == 404 || response.status == 410 { return nil }
        try check(response, "GET")
        return response.body
    }

    /// Stores a body; returns the status if the condition was not met.
    @discardableResult
    private func store(
        _ body: Data,
        _ digest: Digest,
        at path: String,
        if condition: HeaderField? = nil,
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> Int? {
        if let condition {
            let response = try send("PUT", path, body, digest, fields: [condition], until: deadline)
            // The object has changed; or another client stores one at this moment (S3), or a folder is missing (WebDAV).
            if response.status == 412 || response.status == 409 { return response.status }
            // The object was deleted meanwhile (S3).
            if response.status == 404, condition.isNamed("if-match") { return response.status }
            // Some S3-compatible servers don't support the condition.
            if response.status != 501 {
                try check(response, "PUT")
                return nil
            }
        }
        try check(send("PUT", path, body, digest, until: deadline), "PUT")
        return nil
    }

    private func delete(_ path: String, until deadline: ContinuousClock.Instant) throws(RemoteFailure) {
        let response = try send("DELETE", path, until: deadline)
        if response.status == 404 || response.status == 410 { return }
        try check(response, "DELETE")
    }

    private func check(_ response: TransportResponse, _ method: String) throws(RemoteFailure) {
        let kind: RemoteFailure.Kind
        switch response.status {
        case 200..<300: return
        case 507 where method == "PUT": kind = .full
        // The server is overloaded (429) or fails: a later request may succeed.
        case 408, 425, 429, 500...: kind = .failed
        // The session token of S3 has expired and may be renewed, or S3 did not receive the request in time.
        case 400 where isSigned && Self.mayPass(response.body): kind = .denied
        // S3 returns 403 for a missing object if the client may not list objects.
        case 403 where method == "GET": kind = .refused
        // Authentication for the server or a proxy is missing, a token has expired, a clock is wrong, or the server
        // redirects.
        case 300..<400, 401, 403, 407, 421: kind = .denied
        default: kind = .refused
        }
        // A gateway sends 502 and 504 for a server that may still be processing the request (RFC 9110, sections 15.6.3
        // and 15.6.5).
        let isOutcomeUnknown = response.status == 502 || response.status == 504
        let words = kind == .full ? "it is full" : method
        throw RemoteFailure(
            kind,
            "\(address.name): \(words): status \(response.status)",
            isOutcomeUnknown: isOutcomeUnknown
        )
    }

    /// Returns whether S3 answers a request with status 400 for a reason that does not concern the request itself.
    private static func mayPass(_ body: Data) -> Bool {
        let text = String(decoding: body, as: UTF8.self)
        return ["ExpiredToken", "InvalidToken", "RequestTimeout"].contains {
            text.contains("<Code>\($0)</Code>")
        }
    }

    private func send(
        _ method: String,
        _ path: String,
        _ body: Data? = nil,
        _ payload: Digest = SignatureV4.noPayload,
        fields: [HeaderField] = [],
        until deadline: ContinuousClock.Instant
    ) throws(RemoteFailure) -> TransportResponse {
        let rest = deadline - .now
        guard rest > .zero else { throw RemoteFailure(.skipped, "\(address.name): no time left") }
        var request = makeRequest(method, path, body, payload)
        request.timeLimit = rest
        request.fields += fields
        do throws(TransportError) {
            return try transport.performAndWait(request)
        } catch {
            throw RemoteFailure(.init(error), error.message, isOutcomeUnknown: !error.isBeforeRequest)
        }
    }

    /// Returns the request, without a time limit.
    func makeRequest(
        _ method: String,
        _ path: String,
        _ body: Data? = nil,
        _ payload: Digest = SignatureV4.noPayload
    ) -> TransportRequest {
        let whole = address.path + path
        var request = TransportRequest(address.origin + whole, method: method)
        request.security = security
        // Proxies in the environment are for the web; they must not get the values and the password of an internal
        // server.
        request.proxy = .none
        // An entry is longer than its value.
        request.mostBytes = max(longest, Int64(ActionResult.maximumSize)) + (1 << 17)
        if let body {
            request.body = body
            request.fields.append(HeaderField("Content-Type", "application/octet-stream"))
        }
        switch identity {
        case .anybody: break
        case .basic(let credentials): request.credentials = credentials
        case .signed(let signature):
            let signed = SignatureV4.Request(
                method: method,
                path: whole,
                headers: [(name: "host", value: address.authority)],
                payload: payload
            )
            for (name, value) in signature.headers(for: signed, at: .now) {
                request.fields.append(HeaderField(name, value))
            }
        }
        return request
    }
}
