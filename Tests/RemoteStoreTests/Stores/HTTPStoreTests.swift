// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import TestSupport
import Testing
import Transport

@testable import RemoteStore

/// An HTTP server, used without a cache.
@Suite(.takesTurns) struct HTTPStoreTests {
    private func store(
        _ server: WebServer,
        _ form: HTTPStore.Form = .action,
        as identity: HTTPStore.Identity = .anybody,
        longest: Int64 = 16 << 20
    ) throws -> HTTPStore {
        let paths = try #require(RemotePaths())
        let address = try RemoteAddress(server.url())
        let security = TransportSecurity()
        return HTTPStore(
            address: address,
            paths: paths,
            form: form,
            identity: identity,
            security: security,
            longest: longest,
            transport: Transport()
        )
    }

    @Test func `a head that begins with a folded line is an error, and later requests succeed`() throws {
        let gets = Locked(0)
        let long = (0..<40).map { "X-\($0): \(String(repeating: "x", count: 10 + $0 * 40))" }
        let server = try WebServer { request in
            let number = gets.withLock { gets in
                gets += 1
                return gets
            }
            guard number % 2 == 0 else { return WebServer.Answer(404, long) }
            var answer = WebServer.Answer()
            answer.raw = Data("HTTP/1.1 200 OK\r\n folded\r\nContent-Length: 1\r\n\r\nx".utf8)
            return answer
        }
        defer { server.stop() }
        let store = try store(server)
        for round in 0..<300 {
            do throws(RemoteFailure) {
                let key = Digest(of: Array("\(round)".utf8).span)
                #expect(try store.get(key, until: .now + hangLimit) == nil)
            } catch {
                #expect(round % 2 == 1 && (error.kind == .failed || error.kind == .wrong), "\(error)")
            }
        }
        #expect(gets.withLock { $0 } == 300)
    }

    /// Bodies with entity tags, which change under the conditions of RFC 9110.
    private final class Objects: Sendable {
        private let bodies = Locked<[String: (body: Data, tag: Int)]>([:])
        /// Returns the status of the next put; called before it is carried out.
        let onPut: @Sendable (Objects) -> Int?

        init(onPut: @escaping @Sendable (Objects) -> Int? = { _ in nil }) { self.onPut = onPut }

        func answer(_ request: WebServer.Request) -> WebServer.Answer {
            let present = bodies.withLock { $0[request.path] }
            guard request.method == "PUT" else {
                return present.map { WebServer.Answer(200, ["ETag: \"\($0.tag)\""], $0.body) }
                    ?? WebServer.Answer(404)
            }
            if let status = onPut(self) { return WebServer.Answer(status) }
            return bodies.withLock { bodies in
                let present = bodies[request.path]
                if request["If-None-Match"] == "*", present != nil { return WebServer.Answer(412) }
                if let tag = request["If-Match"], tag != present.map({ "\"\($0.tag)\"" }) {
                    return WebServer.Answer(412)
                }
                bodies[request.path] = (request.body, (present?.tag ?? 0) + 1)
                return WebServer.Answer(201)
            }
        }
    }

    private func parcel(_ text: String, _ seconds: Int64) -> RemoteEntry {
        let bytes = Data(text.utf8)
        var record = Record(content: Content(of: bytes.span), created: .now)
        record.version = ChangeVersion(rawValue: UInt64(seconds) << 32)
        return RemoteEntry(record: record.encoded(for: key), bytes: bytes, digest: record.content.digest)
    }

    private let key = Digest(ofKey: "key")

    @Test(arguments: [HTTPStore.Form.action, .plain])
    func `an older value does not replace a newer one, and a value not itself`(form: HTTPStore.Form) throws {
        let objects = Objects()
        let server = try WebServer { objects.answer($0) }
        defer { server.stop() }
        let store = try store(server, form)
        func put(
            _ parcel: RemoteEntry,
            onlyReplacing: Bool = false,
            upTo latest: ChangeVersion = .highest
        ) throws -> Bool {
            try store.putIfNewer(
                key,
                parcel,
                onlyReplacing: onlyReplacing,
                upTo: latest,
                until: .now + hangLimit
            ) == nil
        }
        #expect(try !put(parcel("none", 1), onlyReplacing: true))
        #expect(try put(parcel("second", 2)))
        #expect(try !put(parcel("first", 1)))
        #expect(try !put(parcel("second", 2)))
        #expect(try put(parcel(String(repeating: "x", count: 100_000), 3)), "beside its entry")
        #expect(try store.get(key, until: .now + hangLimit)?.bytes.count == 100_000)
        let removal = RemoteEntry(removalOf: key, at: ChangeVersion(rawValue: 4 << 32))
        #expect(try put(removal, onlyReplacing: true))
        #expect(try store.get(key, until: .now + hangLimit)?.record == removal.record)
        #expect(try !put(parcel("second", 2)))
    }

    private static func date(_ time: Timestamp) -> Date {
        Date(timeIntervalSince1970: Double(time.nanoseconds) / 1e9)
    }

    @Test func `an entry that is far ahead is replaced only if the server's clock says so, too`() throws {
        let objects = Objects()
        let date = Locked<Date?>(nil)
        let format = DateFormatter()
        (format.locale, format.timeZone) = (Locale(identifier: "en_US_POSIX"), TimeZone(identifier: "GMT"))
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        let server = try WebServer { request in
            var answer = objects.answer(request)
            if let date = date.withLock({ $0 }) { answer.fields.append("Date: \(format.string(from: date))") }
            return answer
        }
        defer { server.stop() }
        let store = try store(server)
        let now = Timestamp.now
        func put(_ version: ChangeVersion, by clock: Timestamp) throws -> ChangeVersion? {
            try store.putIfNewer(
                key,
                RemoteEntry(removalOf: key, at: version),
                onlyReplacing: false,
                upTo: ChangeVersion(at: clock + ChangeVersion.furthestAhead, machine: .max),
                until: .now + hangLimit
            )
        }
        let theirs = ChangeVersion(at: now, machine: 5)
        #expect(try put(theirs, by: now) == nil)
        // This machine's clock is five hours behind.
        let behind = now + .seconds(-18_000)
        let ours = ChangeVersion(at: behind, machine: 6)
        #expect(try put(ours, by: behind) == theirs)
        date.withLock { $0 = Self.date(now) }
        #expect(try put(ours, by: behind) == theirs)
        // The entry is from a clock that was ahead.
        date.withLock { $0 = Self.date(behind) }
        #expect(try put(ours, by: behind) == nil)
    }

    @Test func `a put that another client overtakes is compared again`() throws {
        let newer = Locked<RemoteEntry?>(nil)
        let addresses = Locked<HTTPStore?>(nil)
        let key = key
        let objects = Objects { _ in
            // The other client's own put finds nothing to send.
            guard let entry = newer.withLock({ $0.take() }), let other = addresses.withLock({ $0 }) else {
                return nil
            }
            #expect(throws: Never.self) {
                let present = try other.putIfNewer(
                    key,
                    entry,
                    onlyReplacing: false,
                    upTo: .highest,
                    until: .now + hangLimit
                )
                #expect(present == nil)
            }
            return nil
        }
        let server = try WebServer { objects.answer($0) }
        defer { server.stop() }
        let store = try store(server)
        addresses.withLock { $0 = store }
        newer.withLock { $0 = parcel("newer", 5) }
        #expect(
            try store.putIfNewer(
                key,
                parcel("older", 4),
                onlyReplacing: false,
                upTo: .highest,
                until: .now + hangLimit
            ) == ChangeVersion(rawValue: 5 << 32)
        )
        newer.withLock { $0 = parcel("between", 6) }
        #expect(
            try store.putIfNewer(
                key,
                parcel("newest", 7),
                onlyReplacing: false,
                upTo: .highest,
                until: .now + hangLimit
            ) == nil
        )
        #expect(try store.get(key, until: .now + hangLimit)?.bytes == Data("newest".utf8))
    }

    @Test(arguments: [(501, true), (409, false), (412, false)])
    func `a server without conditions stores the value, and endless conflicts are an error`(
        status: Int,
        isStored: Bool
    ) throws {
        let conditions = Locked<[String?]>([])
        let server = try WebServer { request in
            guard request.method == "PUT" else { return WebServer.Answer(404) }
            let condition = request["If-None-Match"]
            conditions.withLock { $0.append(condition) }
            return WebServer.Answer(condition == nil ? 201 : status)
        }
        defer { server.stop() }
        let store = try store(server)
        do throws(RemoteFailure) {
            let result = try store.putIfNewer(
                key,
                parcel("value", 1),
                onlyReplacing: false,
                upTo: .highest,
                until: .now + hangLimit
            )
            #expect(result == nil && isStored)
        } catch {
            #expect(error.kind == (status == 409 ? .refused : .failed) && !isStored)
        }
        #expect(conditions.withLock { $0 } == (isStored ? ["*", nil] : .init(repeating: "*", count: 10)))
    }

    /// 403: a missing object of S3 for clients that may not list objects; 416: an empty object.
    @Test(arguments: [403, 404, 416]) func `a put replaces a body that is not an entry`(status: Int) throws {
        let server = try WebServer { WebServer.Answer($0.method == "PUT" ? 201 : status) }
        defer { server.stop() }
        let store = try store(server, .plain, as: status == 403 ? .signed(signature) : .anybody)
        #expect(
            try store.putIfNewer(
                key,
                parcel("value", 1),
                onlyReplacing: false,
                upTo: .highest,
                until: .now + hangLimit
            ) == nil
        )
    }

    /// Whether S3 answers, the status of a GET and its body, and what the failure of a put is.
    private static let refusals: [(Bool, Int, String, RemoteFailure.Kind)] = [
        (false, 403, "", .denied), (false, 400, "<Code>ExpiredToken</Code>", .refused),
        (true, 400, "<Error><Code>ExpiredToken</Code></Error>", .denied),
        (true, 400, "<Error><Code>InvalidToken</Code></Error>", .denied),
        (true, 400, "<Error><Code>InvalidArgument</Code></Error>", .refused),
    ]

    @Test(arguments: refusals) func `a refusal that may end is not permanent`(
        isSigned: Bool,
        status: Int,
        body: String,
        kind: RemoteFailure.Kind
    ) throws {
        let server = try WebServer { _ in WebServer.Answer(status, [], Data(body.utf8)) }
        defer { server.stop() }
        let store = try store(server, as: isSigned ? .signed(signature) : .anybody)
        do throws(RemoteFailure) {
            _ = try put(parcel("value", 1), to: store)
            Issue.record("it is stored")
        } catch {
            #expect(error.kind == kind)
        }
    }

    @Test func `conflicts of S3 without end are no refusal`() throws {
        let server = try WebServer { WebServer.Answer($0.method == "PUT" ? 409 : 404) }
        defer { server.stop() }
        let store = try store(server, as: .signed(signature))
        do throws(RemoteFailure) {
            _ = try put(parcel("value", 1), to: store)
            Issue.record("it is stored")
        } catch {
            #expect(error.kind == .failed)
        }
    }

    @Test(arguments: [HTTPStore.Form.action, .plain])
    func `a longer value of another machine is not wrong, and can be replaced`(form: HTTPStore.Form) throws {
        let long = noise(count: 6 << 20, seed: 1)
        let puts = Locked(0)
        let server = try WebServer { request in
            guard request.method == "PUT" else { return WebServer.Answer(200, [], long) }
            puts.withLock { $0 += 1 }
            #expect(request["If-Match"] == nil && request["If-None-Match"] == nil)
            return WebServer.Answer(201)
        }
        defer { server.stop() }
        let store = try store(server, form, longest: 1000)
        do throws(RemoteFailure) {
            _ = try store.get(key, until: .now + hangLimit)
            Issue.record("it is accepted")
        } catch {
            #expect(error.kind == .tooLong)
        }
        #expect(try put(parcel("value", 1), to: store))
        #expect(puts.withLock { $0 } == 1)
    }

    @Test func `too few replicas of Redis are no refusal`() {
        #expect(RemoteFailure(redisError: "NOREPLICAS", of: "redis").kind == .full)
    }

    private func put(_ parcel: RemoteEntry, to store: HTTPStore) throws(RemoteFailure) -> Bool {
        try store.putIfNewer(key, parcel, onlyReplacing: false, upTo: .highest, until: .now + hangLimit)
            == nil
    }

    private var signature: SignatureV4 {
        let credentials = RemoteCredentials.Entry(user: "key", secret: "secret")
        return SignatureV4(credentials: credentials, region: "us-east-1")
    }

    @Test(arguments: [Int64.max, Int64.max - 1, Int64.max / 2 + 1])
    func `the maximum size can be close to the maximum integer`(size: Int64) throws {
        let bodies = Locked<[String: Data]>([:])
        let server = try WebServer { request in
            bodies.withLock { bodies in
                if request.method == "PUT" { bodies[request.path] = request.body }
                return bodies[request.path].map { WebServer.Answer(200, [], $0) } ?? WebServer.Answer(404)
            }
        }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        var remote = CacheConfiguration.Remote(servers: [server.url(), "redis://127.0.0.1:1"])
        remote.maximumSize = size
        remote.limit = .seconds(3600)
        let cache = try SharedCache(at: directory.path + "/cache", remote: remote)
        try cache.put("value", forKey: "key")
        #expect(try cache.get(forKey: "key") != nil)
        for number in 0..<8 { #expect(try cache.get(forKey: "\(number)") == nil) }
    }

    @Test func `requests to a store ignore the environment's proxy`() throws {
        let address = try RemoteAddress("http://store.example:8080/base")
        let store = HTTPStore(
            address: address,
            paths: try #require(RemotePaths()),
            form: .action,
            identity: .basic(TransportCredentials(user: "user", password: "word")),
            security: TransportSecurity(),
            longest: 1 << 20,
            transport: Transport()
        )
        for method in ["GET", "PUT", "DELETE"] {
            let request = store.makeRequest(method, "/ac/x")
            #expect(request.proxy == .none)
            #expect(request.url == "http://store.example:8080/base/ac/x" && request.method == method)
        }
    }
}
