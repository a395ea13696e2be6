// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// Signs requests to S3 and compatible servers with AWS Signature Version 4, in a header.
///
/// The payload hash is the digest of the body, which the cache already has. Paths are percent-encoded once, as S3
/// requires; other AWS services require two encodings.
struct SignatureV4: Sendable {
    /// The request to sign.
    struct Request: Sendable {
        let method: String
        /// The path, which begins with `/` and is not percent-encoded; there is no query.
        let path: String
        /// All headers to sign, which must include `host`.
        var headers: [(name: String, value: String)]
        /// The digest of the body; the digest of no bytes if there is no body.
        var payload = SignatureV4.noPayload
    }

    /// The digest of no bytes.
    static let noPayload = Digest(ofKey: "")

    let credentials: RemoteCredentials.Entry
    let region: String
    var service = "s3"

    /// Returns the headers to add to the request: `authorization`, and the other headers that the signature covers.
    func headers(for request: Request, at time: Timestamp) -> [(name: String, value: String)] {
        var added = [("x-amz-content-sha256", request.payload.description), ("x-amz-date", Self.text(time))]
        if let token = credentials.sessionToken { added.append(("x-amz-security-token", String(token))) }
        var signed = request
        signed.headers += added.map { (name: $0.0, value: $0.1) }
        added.append(("authorization", authorization(for: signed, at: time)))
        return added.map { (name: $0.0, value: $0.1) }
    }

    /// Returns a time in UTC, such as `20130524T000000Z`.
    static func text(_ time: Timestamp) -> String {
        let seconds = max(0, time.nanoseconds) / 1_000_000_000
        return Date(timeIntervalSince1970: Double(seconds)).formatted(
            Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
        )
    }

    /// Returns the value of `authorization` for a request that already has all its headers, including `x-amz-date` for
    /// `time`.
    func authorization(for request: Request, at time: Timestamp) -> String {
        let date = String(Self.text(time).prefix(8))
        let scope = "\(date)/\(region)/\(service)/aws4_request"
        let (canonical, names) = Self.canonical(request)
        let toSign = "AWS4-HMAC-SHA256\n\(Self.text(time))\n\(scope)\n\(Digest(ofKey: canonical))"
        let first = Array("AWS4\(credentials.secretKey)".utf8)
        let key = [date, region, service, "aws4_request"].reduce(first) { key, part in
            HMAC.sha256(key: key, Array(part.utf8))
        }
        let signature = HMAC.sha256(key: key, Array(toSign.utf8))
        return "AWS4-HMAC-SHA256 Credential=\(credentials.user)/\(scope), "
            + "SignedHeaders=\(names), Signature=\(Self.hexadecimal(signature))"
    }

    /// Returns the canonical form of the request, and the names of the signed headers.
    static func canonical(_ request: Request) -> (text: String, names: String) {
        var values: [String: [String]] = [:]
        for header in request.headers {
            let words = header.value.split { $0 == " " || $0 == "\t" }
            values[header.name.lowercased(), default: []].append(words.joined(separator: " "))
        }
        let sorted = values.sorted { $0.key < $1.key }
        let names = sorted.map { $0.key }.joined(separator: ";")
        let lines = sorted.map { "\($0.key):\($0.value.joined(separator: ","))\n" }.joined()
        let text = [
            request.method, encoded(request.path), "", lines, names, request.payload.description,
        ].joined(separator: "\n")
        return (text, names)
    }

    /// Returns the path in the encoding that must be sent.
    private static func encoded(_ path: String) -> String {
        var result = ""
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default: result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
