// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct StoringTests {
    struct Case: Sendable {
        var section: String
        var method: String
        var status: Int
        var fields: HTTPFields
        var expected: Bool
        init(_ section: String, _ method: String, _ status: Int, _ fields: HTTPFields, _ expected: Bool) {
            (self.section, self.method, self.status) = (section, method, status)
            (self.fields, self.expected) = (fields, expected)
        }
    }

    static let cases = [
        Case("9111 3", "GET", 200, [:], true), Case("9111 3", "GET", 302, [:], false),
        Case("9111 3", "GET", 302, ["Cache-Control": "max-age=1"], true),
        Case("9111 3", "GET", 302, ["Cache-Control": "private"], true),
        Case("9111 3", "GET", 302, ["Cache-Control": "s-maxage=1"], false),
        Case("9111 3", "GET", 599, ["Expires": "0"], true), Case("9111 3", "POST", 200, [:], false),
        Case("9111 3", "HEAD", 200, [:], false), Case("9111 3", "GET", 103, [:], false),
        Case("9111 3", "GET", 304, [:], false), Case("9111 4.1", "GET", 200, ["Vary": "A, *"], false),
        Case("9111 5.2.2.5", "GET", 200, ["Cache-Control": "no-store, max-age=9"], false),
        Case("9111 5.2.2.3", "GET", 200, ["Cache-Control": "no-store, must-understand"], true),
        Case("9111 5.2.2.3", "GET", 299, ["Cache-Control": "max-age=9, must-understand"], false),
        Case("9111 3.3", "GET", 206, [:], false), Case("9111 3.3", "GET", 206, ["Content-Range": "bytes 0-1/9"], true),
        Case("9110 15.1", "GET", 404, [:], true), Case("9110 15.1", "GET", 500, [:], false),
    ]

    @Test(arguments: cases) func `what may be kept`(_ line: Case) throws {
        let url = try #require(HTTPURL("http://a/"))
        let storing = HTTPCachePolicy().storing(
            HTTPResponse(line.status, line.fields), to: HTTPRequest(line.method, url))
        var isKept = true
        if case .not = storing { isKept = false }
        #expect(isKept == line.expected, "\(line.section): \(line.method) \(line.status)")
    }
}
