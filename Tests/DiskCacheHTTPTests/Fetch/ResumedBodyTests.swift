// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Servers that interrupt a body and then send something other than its rest.
@Suite(.takesTurns) struct ResumedBodyTests {
    /// A server's response to a request for the rest of a body of 1000 bytes, 100 of which have been received.
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        /// Head lines of the first response, without its status line.
        var first = ["Content-Length: 1000", "ETag: \"a\""]
        /// Head lines of the second response.
        var head: [String]
        /// The bytes of the second response, from the same body or from another one.
        var body: Data
        var isChunked = false
        /// Whether the second response completes the body.
        var isRest = false

        var testDescription: String { name }

        var answer: WebServer.Answer {
            if !isChunked {
                return .raw(["HTTP/1.1 206 Part"] + head + ["Content-Length: \(body.count)"], body)
            }
            return .raw(["HTTP/1.1 206 Part", "Transfer-Encoding: chunked"] + head, chunked(body))
        }
    }

    static let body = noise(count: 1000, seed: 7)
    static let control = "Cache-Control: max-age=60"

    private static func part(_ range: Range<Int>) -> Data { body.subdata(in: range) }

    static let cases = [
        Case(
            name: "all of it",
            head: ["Content-Range: bytes 100-999/1000", "ETag: \"a\""],
            body: part(100..<1000),
            isRest: true
        ),
        Case(
            name: "all of it, in chunks, and the length was known",
            head: ["Content-Range: bytes 100-999/*", "ETag: \"a\""],
            body: part(100..<1000),
            isChunked: true,
            isRest: true
        ),
        Case(
            name: "all of it, and only now its length",
            first: ["Transfer-Encoding: chunked", "ETag: \"a\""],
            head: ["Content-Range: bytes 100-999/1000", "ETag: \"a\""],
            body: part(100..<1000),
            isRest: true
        ),
        Case(
            name: "all of it, by its date",
            first: [
                "Content-Length: 1000", "Date: Thu, 02 Jan 2020 00:00:00 GMT",
                "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT",
            ],
            head: ["Content-Range: bytes 100-999/1000", "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"],
            body: part(100..<1000),
            isRest: true
        ),
        Case(
            name: "a range that ends early, of an unknown length",
            head: ["Content-Range: bytes 100-199/*", "ETag: \"a\""],
            body: part(100..<200)
        ),
        Case(
            name: "a range that ends early, and no length is known at all",
            first: ["Transfer-Encoding: chunked", "ETag: \"a\""],
            head: ["Content-Range: bytes 100-199/*", "ETag: \"a\""],
            body: part(100..<200)
        ),
        Case(
            name: "fewer bytes than the range, in chunks",
            head: ["Content-Range: bytes 100-999/*", "ETag: \"a\""],
            body: part(100..<150),
            isChunked: true
        ),
        Case(
            name: "fewer bytes than the range, by Content-Length",
            head: ["Content-Range: bytes 100-999/1000", "ETag: \"a\""],
            body: part(100..<150)
        ),
        Case(
            name: "more bytes than the range",
            head: ["Content-Range: bytes 100-199/*", "ETag: \"a\""],
            body: noise(count: 5000, seed: 8)
        ),
        Case(
            name: "more bytes than the range, in chunks, up to the length of the whole",
            head: ["Content-Range: bytes 100-199/1000", "ETag: \"a\""],
            body: part(100..<200) + noise(count: 800, seed: 8),
            isChunked: true
        ),
        Case(
            name: "more bytes than the whole, in chunks",
            head: ["Content-Range: bytes 100-999/1000", "ETag: \"a\""],
            body: part(100..<1000) + noise(count: 5000, seed: 8),
            isChunked: true
        ),
        Case(
            name: "without an ETag",
            head: ["Content-Range: bytes 100-999/1000"],
            body: noise(count: 900, seed: 8)
        ),
        Case(
            name: "without an ETag, with the same date",
            first: [
                "Content-Length: 1000", "ETag: \"a\"", "Date: Thu, 02 Jan 2020 00:00:00 GMT",
                "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT",
            ],
            head: ["Content-Range: bytes 100-999/1000", "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"],
            body: noise(count: 900, seed: 8)
        ),
        Case(
            name: "without the date that it was asked for by",
            first: [
                "Content-Length: 1000", "Date: Thu, 02 Jan 2020 00:00:00 GMT",
                "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT",
            ],
            head: ["Content-Range: bytes 100-999/1000"],
            body: noise(count: 900, seed: 8)
        ),
        Case(
            name: "with another ETag",
            head: ["Content-Range: bytes 100-999/1000", "ETag: \"b\""],
            body: noise(count: 900, seed: 8)
        ),
        Case(
            name: "with a weak ETag",
            head: ["Content-Range: bytes 100-999/1000", "ETag: W/\"a\""],
            body: noise(count: 900, seed: 8)
        ),
        Case(
            name: "of another length",
            head: ["Content-Range: bytes 100-1099/1100", "ETag: \"a\""],
            body: noise(count: 1000, seed: 8)
        ),
        Case(
            name: "with another coding",
            head: ["Content-Range: bytes 100-999/1000", "ETag: \"a\"", "Content-Encoding: gzip"],
            body: noise(count: 900, seed: 8)
        ),
        Case(
            name: "from another place on",
            head: ["Content-Range: bytes 99-999/1000", "ETag: \"a\""],
            body: part(99..<1000)
        ),
        Case(name: "without a range", head: ["ETag: \"a\""], body: part(100..<1000)),
        Case(
            name: "with a range in reverse",
            head: ["Content-Range: bytes 999-100/1000", "ETag: \"a\""],
            body: part(100..<1000)
        ),
        Case(
            name: "with a range at the end of the numbers",
            first: ["Transfer-Encoding: chunked", "ETag: \"a\""],
            head: ["Content-Range: bytes 100-9223372036854775806/9223372036854775807", "ETag: \"a\""],
            body: part(100..<200),
            isChunked: true
        ),
        Case(
            name: "with a range beyond the numbers",
            first: ["Transfer-Encoding: chunked", "ETag: \"a\""],
            head: ["Content-Range: bytes 100-9223372036854775807/*", "ETag: \"a\""],
            body: part(100..<200),
            isChunked: true
        ),
    ]

    @Test(arguments: cases) func `only the actual rest completes a partial body`(_ one: Case) async throws {
        let isWhole = Locked(false)
        let place = try FetchFixture { request in
            if request["Range"] != nil { return one.answer }
            if isWhole.withLock({ $0 }) {
                return WebServer.Answer(200, [Self.control, "ETag: \"a\""], Self.body)
            }
            let isChunked = one.first.contains("Transfer-Encoding: chunked")
            let part = Self.part(0..<100)
            return .raw(
                ["HTTP/1.1 200 OK", Self.control] + one.first,
                isChunked ? chunked(part, isWhole: false) : part
            )
        }
        #expect(await place.failure()?.code == .truncated)
        let second = try? await place.fetch()
        #expect(place.server.requests.last?["Range"] == "bytes=100-" || place.server.requests.count > 2)
        if one.isRest { #expect(second?.body == Self.body) }
        #expect(second.map { $0.body == Self.body } ?? true)
        isWhole.withLock { $0 = true }
        for _ in 0..<2 {
            let response = try await place.fetch { $0.retries = 2 }
            #expect(response.status == 200 && response.body == Self.body)
            #expect(response.field("Content-Length") == "1000")
        }
        #expect(place.partials.isEmpty)
    }

    @Test func `the rest may arrive in several ranges`() async throws {
        let place = try FetchFixture { request in
            guard let range = request["Range"], let first = Int(range.dropFirst(6).dropLast()) else {
                return .raw(
                    ["HTTP/1.1 200 OK", Self.control, "Content-Length: 1000", "ETag: \"a\""],
                    Self.part(0..<100)
                )
            }
            let last = min(first + 449, 999)
            let place = "Content-Range: bytes \(first)-\(last)/*"
            return WebServer.Answer(206, [place, "ETag: \"a\""], Self.part(first..<last + 1))
        }
        #expect(try await place.fetch { $0.retries = 2 }.body == Self.body)
        #expect(place.server.requests.compactMap { $0["Range"] } == ["bytes=100-", "bytes=550-"])
    }

    @Test(arguments: [false, true]) func `a size limit applies to the whole body`(isKnown: Bool)
        async throws
    {
        let place = try FetchFixture { request in
            if request["Range"] != nil {
                return WebServer.Answer(
                    206,
                    ["Content-Range: bytes 100-999/\(isKnown ? "1000" : "*")", "ETag: \"a\""],
                    Self.part(100..<1000)
                )
            }
            let part = Self.part(0..<100)
            let length = isKnown ? "Transfer-Encoding: chunked" : "Content-Length: 1000"
            return .raw(
                ["HTTP/1.1 200 OK", Self.control, length, "ETag: \"a\""],
                isKnown ? chunked(part, isWhole: false) : part
            )
        }
        #expect(await place.failure()?.code == .truncated)
        #expect(await place.failure { $0.maximumSize = 950 }?.code == .tooLarge)
        #expect(try await place.fetch { $0.maximumSize = 1000 }.body == Self.body)
    }

    @Test(arguments: [900, 1100])
    func `a first body that contradicts its Content-Length is an error`(count: Int) async throws {
        let place = try FetchFixture { _ in
            .raw(
                ["HTTP/1.1 200 OK", Self.control, "Transfer-Encoding: chunked", "Content-Length: 1000"],
                chunked(noise(count: count, seed: 9))
            )
        }
        #expect(await place.failure() != nil)
        #expect(place.directory.files(below: "cache/objects").isEmpty)
    }

    @Test(arguments: [3, 7]) func `a part with another length than its Content-Range is an error`(
        count: Int
    ) async throws {
        let place = try FetchFixture { _ in
            .raw(
                ["HTTP/1.1 206 Part", "Content-Range: bytes 5-9/100", "Transfer-Encoding: chunked"],
                chunked(Data(count: count))
            )
        }
        #expect(await place.failure { $0.fields = [("Range", "bytes=5-9")] } != nil)
    }

    @Test(arguments: [("bytes */100", "a", true), ("bytes */100", "b", false), ("bytes */99", "a", false)])
    func `a 416 completes a body only if it has the same ETag and length`(
        range: String,
        tag: String,
        isWhole: Bool
    ) async throws {
        let place = try FetchFixture { request in
            guard request["Range"] == nil else {
                return WebServer.Answer(416, ["Content-Range: \(range)", "ETag: \"\(tag)\""])
            }
            return WebServer.Answer(200, [Self.control, "ETag: \"b\""], Self.part(100..<200))
        }
        // As if a process had been killed after it wrote the last byte and before it stored the entry.
        let request = try HTTPRequest(place.request())
        let key = place.http.context.responses.flightKey(request, nil, CredentialHasher(key: Data()))
        let partial = try #require(try place.http.context.responses.cache.partialFile(forKey: key))
        let stored = StoredResponse(
            fields: ["ETag": "\"a\"", "Cache-Control": "max-age=60"],
            requested: HTTPDate(seconds: 0),
            received: HTTPDate(seconds: 0),
            variant: Variant(of: request, fields: [Variant.credentials], hasher: { $0 }),
            body: .part(0..<0, of: 100)
        )
        #expect(partial.begin(noting: Array(stored.text.utf8)))
        try partial.file.writeAll(Array(Self.part(0..<100)).span)
        partial.letGo()
        #expect(try await place.fetch().body == Self.part(isWhole ? 0..<100 : 100..<200))
        #expect(
            place.server.requests.map { $0["Range"] } == (isWhole ? ["bytes=100-"] : ["bytes=100-", nil])
        )
    }
}

/// Encodes a body in HTTP/1.1 chunks, with or without the last chunk.
private func chunked(_ body: Data, isWhole: Bool = true) -> Data {
    var bytes = Data()
    var rest = body
    while !rest.isEmpty {
        let piece = rest.prefix(300)
        bytes += Data("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Data("\r\n".utf8)
        rest = rest.dropFirst(piece.count)
    }
    return isWhole ? bytes + Data("0\r\n\r\n".utf8) : bytes
}
