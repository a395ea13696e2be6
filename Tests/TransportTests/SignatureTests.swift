// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// Requests that are signed as AWS does it (Signature Version 4), computed here once more.
@Suite(.takesTurns) struct SignatureTests {
    private func hash(_ bytes: [UInt8]) -> [UInt8] {
        let digest = SHA256.hash(bytes.span)
        return digest.indices.map { digest[$0] }
    }

    /// RFC 2104.
    private func code(_ key: [UInt8], _ text: String) -> [UInt8] {
        let block = key + [UInt8](repeating: 0, count: 64 - key.count)
        return hash(block.map { $0 ^ 0x5C } + hash(block.map { $0 ^ 0x36 } + Array(text.utf8)))
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    @Test(arguments: [nil, "what is sent"])
    func `a request has the signature of its head and of what is sent`(_ body: String?) async throws {
        let server = try LoopbackServer { peer in
            _ = peer.read(Int(peer.field("Content-Length") ?? "") ?? 0)
            return peer.answer()
        }
        var request = TransportRequest(server.url("/bucket/key"), method: body == nil ? "GET" : "PUT")
        let digest = hex(hash(Array((body ?? "").utf8)))
        // The body is not read before it is sent: its digest is the caller's to say.
        request.fields = [HeaderField("x-amz-content-sha256", digest)]
        if let body { request.source = .bytes(Data(body.utf8)) }
        request.credentials = TransportCredentials(
            user: "ID",
            password: "secret",
            signature: "aws:amz:eu-north-1:s3"
        )
        #expect(try await Transport().perform(request).status == 200)
        let head = try #require(server.requests.first)
        #expect(!head.contains("secret"))
        let line = try #require(head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: ") })
        let form = #/.*Credential=ID/(\d+)/(.*), SignedHeaders=(.*), Signature=(.*)/#
        let parts = try #require(try form.wholeMatch(in: line)).output
        let (date, scope, names, signature) = (parts.1, parts.2, parts.3, parts.4)
        #expect(scope == "eu-north-1/s3/aws4_request")

        var values: [Substring: String] = [:]
        for line in head.split(separator: "\r\n").dropFirst() {
            let (name, value) = (line.prefix { $0 != ":" }, line.drop { $0 != ":" }.dropFirst())
            values[name.lowercased()[...]] = value.trimmingCharacters(in: .whitespaces)
        }
        let fields = names.split(separator: ";").map { "\($0):\(values[$0] ?? "")\n" }.joined()
        #expect(names.contains("host") && names.contains("x-amz-date"))
        let canonical = "\(request.method)\n/bucket/key\n\n\(fields)\n\(names)\n\(digest)"
        let time = try #require(values["x-amz-date"])
        let text = "AWS4-HMAC-SHA256\n\(time)\n\(date)/\(scope)\n\(hex(hash(Array(canonical.utf8))))"
        var key = code(Array("AWS4secret".utf8), String(date))
        for part in scope.split(separator: "/") { key = code(key, String(part)) }
        #expect(signature == hex(code(key, text)))
    }
}
