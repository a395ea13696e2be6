// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct StoredFieldsTests {
    static let cases: [Row] = [
        Row("9111 3.1", response: "Content-Type: a/b | X-Unknown: c", "Content-Type: a/b | X-Unknown: c"),
        Row("9111 3.1", response: "X: a | X: b", "X: a | X: b"),
        Row("9111 3.1", response: "Connection: close | X: a", "X: a"),
        Row("9111 3.1", response: "Connection: x, Y | X: a | y: b | Z: c", "Z: c"),
        Row("9111 3.1", response: "Connection: x | Connection: y | X: a | Y: b | Z: c", "Z: c"),
        Row("9110 7.6.1", response: "Keep-Alive: timeout=5 | X: a", "X: a"),
        Row("9110 7.6.1", response: "Proxy-Connection: close | X: a", "X: a"),
        Row("9110 7.6.1", response: "TE: trailers | X: a", "X: a"),
        Row("9110 7.6.1", response: "Transfer-Encoding: chunked | X: a", "X: a"),
        Row("9110 7.6.1", response: "Upgrade: h2c | X: a", "X: a"),
        Row("9110 6.6.2", response: "Trailer: y | X: a", "X: a"),
        Row("9111 3.1", response: "Proxy-Authenticate: Basic | X: a", "X: a"),
        Row("9111 3.1", response: "Proxy-Authentication-Info: a=b | X: a", "X: a"),
        Row("9111 3.1", response: "Proxy-Authorization: Basic abc | X: a", "X: a"),
        Row("9110 11.6.3", response: "Authentication-Info: a=b | X: a", "X: a"),
        Row("9110 11.6.2", response: "Authorization: Basic abc | X: a", "X: a"),
        Row("9111 7.3", response: "Cookie: a=b | X: a", "X: a"),
        Row("9111 3.1", response: "Set-Cookie: a=b | SET-COOKIE: c", "SET-COOKIE: c | Set-Cookie: a=b"),
        Row("9111 3.1", response: "Set-Cookie2: a=b | X: a", "Set-Cookie2: a=b | X: a"),
        Row("9110 11.6.1", response: "WWW-Authenticate: Basic | X: a", "WWW-Authenticate: Basic | X: a"),
        Row("9111 5.2.2.7", response: "CC: private=\"x\" | X: a", "CC: private=\"x\" | X: a"),
    ]

    @Test(arguments: cases) func `hop-by-hop and credential fields are dropped`(_ row: Row) {
        #expect(Row.text(StoredFields.of(row.response().fields)) == row.expected)
    }
}
