// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import TestSupport
import Testing

@testable import RemoteStore

/// The examples of Amazon's documentation and of its test suite for version 4.
///
/// The documentation is "Signature Calculations for the Authorization Header" in the Amazon S3 API Reference.
@Suite(.takesTurns) struct SignatureV4Tests {
    private let signer = SignatureV4(
        credentials: RemoteCredentials.Entry(
            user: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
        ),
        region: "us-east-1"
    )
    private let time = Timestamp(nanoseconds: 1_369_353_600_000_000_000)
    private let host = (name: "Host", value: "examplebucket.s3.amazonaws.com")

    private func signature(_ request: SignatureV4.Request) throws -> String {
        let header = try #require(signer.headers(for: request, at: time).first { $0.name == "authorization" })
        return String(try #require(header.value.split(separator: "=").last))
    }

    @Test("GET of an object")
    func get() throws {
        let request = SignatureV4.Request(
            method: "GET",
            path: "/test.txt",
            headers: [host, (name: "Range", value: "bytes=0-9")]
        )
        let value = try #require(signer.headers(for: request, at: time).first { $0.name == "authorization" })
            .value
        #expect(
            value == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
                + "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        )
    }

    @Test("PUT of an object")
    func put() throws {
        let request = SignatureV4.Request(
            method: "PUT",
            path: "/test$file.text",
            headers: [
                host, (name: "Date", value: "Fri, 24 May 2013 00:00:00 GMT"),
                (name: "x-amz-storage-class", value: "REDUCED_REDUNDANCY"),
            ],
            payload: Digest(ofKey: "Welcome to Amazon S3.")
        )
        let signed = try signature(request)
        #expect(
            signed == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        )
    }

    @Test("get-vanilla of the test suite")
    func vanilla() {
        let signer = SignatureV4(
            credentials: RemoteCredentials.Entry(
                user: "AKIDEXAMPLE",
                secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
            ),
            region: "us-east-1",
            service: "service"
        )
        let request = SignatureV4.Request(
            method: "GET",
            path: "/",
            headers: [
                (name: "Host", value: "example.amazonaws.com"),
                (name: "X-Amz-Date", value: "20150830T123600Z"),
            ]
        )
        let value = signer.authorization(
            for: request,
            at: Timestamp(nanoseconds: 1_440_938_160_000_000_000)
        )
        #expect(value.hasSuffix("5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"))
    }

    @Test("values are trimmed, spaces collapsed, and lines of the same name joined")
    func canonicalHeaders() {
        let request = SignatureV4.Request(
            method: "GET",
            path: "/a b/ü",
            headers: [(name: "My", value: "  a   b "), (name: "Host", value: "h"), (name: "my", value: "c")]
        )
        let (text, names) = SignatureV4.canonical(request)
        #expect(names == "host;my")
        #expect(text.hasPrefix("GET\n/a%20b/%C3%BC\n\nhost:h\nmy:a b,c\n\nhost;my\n"))
    }

    @Test("a session's token is sent and signed, and no secret is printed")
    func token() throws {
        let credentials = RemoteCredentials.Entry(user: "A", secret: "geheim:T:U")
        let signer = SignatureV4(credentials: credentials, region: "r")
        let headers = signer.headers(
            for: SignatureV4.Request(method: "GET", path: "/", headers: [host]),
            at: time
        )
        #expect(headers.contains { $0.name == "x-amz-security-token" && $0.value == "T:U" })
        #expect(headers.contains { $0.value.contains("x-amz-date;x-amz-security-token") })
        #expect(!"\(credentials)".contains("geheim") && !String(reflecting: credentials).contains("geheim"))
    }

    @Test(
        "times are written in UTC",
        arguments: [
            (0, "19700101T000000Z"), (951_872_523, "20000301T010203Z"), (1_709_251_199, "20240229T235959Z"),
            (4_133_937_600, "21001231T120000Z"),
        ]
    )
    func times(_ seconds: Int, _ text: String) {
        #expect(SignatureV4.text(Timestamp(nanoseconds: Int64(seconds) * 1_000_000_000)) == text)
    }

    @Test("HMAC matches the test vectors of RFC 4231")
    func hmac() {
        func text(_ bytes: [UInt8]) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        #expect(
            text(HMAC.sha256(key: [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8)))
                == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        )
        let long = Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)
        #expect(
            text(HMAC.sha256(key: [UInt8](repeating: 0xaa, count: 131), long))
                == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        )
    }
}
