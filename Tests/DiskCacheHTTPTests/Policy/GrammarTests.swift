// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct GrammarTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var section: String
        var text: String
        var expected: String
        var testDescription: String { "\(section): \(text)" }
        init(_ section: String, _ text: String, _ expected: String) {
            (self.section, self.text, self.expected) = (section, text, expected)
        }
    }

    @Test func `an entity tag that can't be sent back, or is very long, is none`() {
        for text in [
            "\"a\u{1}\"", "\"\u{7F}\"", "W/\"a\tb\"", "\"" + String(repeating: "a", count: 1023) + "\"",
        ] {
            #expect(EntityTag(text) == nil)
        }
        #expect(EntityTag("\"" + String(repeating: "a", count: 1022) + "\"") != nil)
    }

    static let members = [
        ("9110 5.6.1", "a, b", "a·b"), ("9110 5.6.1", ",a ,,\tb,", "a·b"), ("9110 5.6.1", " , ", ""),
        ("9110 5.6.4", "a=\"b,c\", d", "a=\"b,c\"·d"), ("9110 5.6.4", "\"a\\\", b\", c", "\"a\\\", b\"·c"),
        ("9110 5.6.4", "\"a, b", "\"a·b"), ("9110 5.6.4", "\"a\\\", b", "\"a\\\"·b"),
        ("9110 5.6.4", "\"a\"\"b, c", "\"a\"\"b·c"),
    ]

    @Test(arguments: members)
    func `a list is split at commas outside quotes`(_ section: String, _ text: String, _ expected: String) {
        #expect(HTTPText.members(text).joined(separator: "·") == expected)
    }

    @Test func `a long unterminated quoted string is parsed in one pass`() {
        let text = "\"" + String(repeating: "\\\"", count: 500_000)
        #expect(HTTPText.members(text).count == 1)
    }

    static let dates: [Case] = [
        Case("9110 5.6.7", "Sun, 06 Nov 1994 08:49:37 GMT", "784111777"),
        Case("9110 5.6.7", "Sunday, 06-Nov-94 08:49:37 GMT", "784111777"),
        Case("9110 5.6.7", "Sun Nov  6 08:49:37 1994", "784111777"),
        Case("9111 4.2", "sun, 06 NOV 1994 08:49:37 gmt", "784111777"),
        Case("9110 5.6.7", "Thu, 01 Jan 1970 00:00:00 GMT", "0"),
        Case("9110 5.6.7", "Wed, 31 Dec 1969 23:59:59 GMT", "-1"),
        Case("9110 5.6.7", "Thu, 29 Feb 2024 00:00:00 GMT", "1709164800"),
        Case("9110 5.6.7", "Thu, 29 Feb 2023 00:00:00 GMT", "nil"),
        Case("9111 4.2", "Sun, 06 Nov 1994 08:49:37 CET", "nil"),
        Case("9111 4.2", "Sun, 06 Nov 1994 08:49:37 UTC", "nil"),
        Case("9111 5.3", "0", "nil"), Case("9111 5.3", "", "nil"), Case("9111 5.3", "never", "nil"),
        Case("9110 5.6.7", "Sun, 6 Nov 1994 08:49:37 GMT", "nil"),
        Case("9110 5.6.7", "Sun, 06 Nov 1994 8:49:37 GMT", "nil"),
        Case("9110 5.6.7", "Sun, 06 Nov 94 08:49:37 GMT", "nil"),
        Case("9110 5.6.7", "Sun 06 Nov 1994 08:49:37 GMT", "nil"),
        Case("9110 5.6.7", "Sun, 06 Nov 1994 24:00:00 GMT", "nil"),
        Case("9110 5.6.7", "Sun,  06 Nov 1994 08:49:37 GMT", "nil"),
    ]

    @Test(arguments: dates) func `dates are parsed in all three formats`(_ line: Case) {
        let date = HTTPDate(line.text, now: HTTPDate(seconds: 1_700_000_000))
        #expect(date.map { String($0.seconds) } ?? "nil" == line.expected)
        if let date { #expect(HTTPDate(date.text, now: date) == date) }
    }

    static let seconds: [Case] = [
        Case("9111 5.2.2.1", "max-age=60", "60"), Case("9111 5.2", "MAX-AGE=60", "60"),
        Case("9111 5.2", "max-age=\"60\"", "60"),
        Case("9111 1.2.2", "max-age=99999999999999999999", "2147483648"),
        Case("9111 4.2.1", "max-age=60, max-age=0", "60"),
        Case("9111 4.2.1", "max-age=x, max-age=9", "invalid"),
        Case("9111 4.2.1", "max-age=-1", "invalid"), Case("9111 4.2.1", "max-age=1.5", "invalid"),
        Case("9111 4.2.1", "max-age", "invalid"), Case("9111 4.2.1", "max-age=", "invalid"),
        Case("9111 5.2", "max-age = 60", "invalid"), Case("9111 5.2", "max-age= 60", "invalid"),
        Case("9111 5.2.3", "x=\"max-age=5\", max-age=7", "7"),
        Case("9111 5.2.3", "x=\"a\\\", max-age=5\"", "nil"),
        Case("9111 5.2.3", "x=\"open, max-age=5", "5"), Case("9111 5.2.3", "unknown, , foo=bar", "nil"),
        Case("9111 5.2", "public,max-age=0060", "60"), Case("9111 5.2", "xmax-age=5", "nil"),
    ]

    @Test(arguments: seconds) func `max-age is a number of seconds or invalid`(_ line: Case) {
        let found: String
        switch CacheControl(["Cache-Control": line.text]).seconds("max-age") {
        case .seconds(let seconds): found = String(seconds)
        case .invalid: found = "invalid"
        case nil: found = "nil"
        }
        #expect(found == line.expected)
    }

    static let noCache: [Case] = [
        Case("9111 5.2.2.4", "no-cache", "all"), Case("9111 5.2.2.4", "no-cache=\"A, b\"", "a b"),
        Case("9111 5.2.2.4", "no-cache=A", "a"), Case("9111 5.2.2.4", "no-cache=\"\"", "all"),
        Case("9111 5.2.2.4", "no-cache=\"a\", no-cache", "all"),
        Case("9111 5.2.2.4", "no-cache=\"a b\"", "all"),
        Case("9111 5.2.2.4", "no-cachex", ""),
    ]

    @Test(arguments: noCache) func `no-cache applies to all fields or to those named`(_ line: Case) {
        let control = CacheControl(["Cache-Control": line.text])
        let names = control.fieldsToValidate.sorted().joined(separator: " ")
        #expect((control.forbidsUnvalidatedUse ? "all" : names) == line.expected)
    }

    static let urls: [Case] = [
        Case("9110 4.2.3", "HTTP://Example.COM:80", "http://example.com/"),
        Case("9110 4.2.3", "https://a:443/x", "https://a/x"),
        Case("9110 4.2.3", "https://a:/x", "https://a/x"),
        Case("9110 4.2.3", "http://a:443/", "http://a:443/"),
        Case("9110 4.2.3", "http://a/%7Ex", "http://a/~x"),
        Case("3986 6.2.2.1", "http://a/%2fB", "http://a/%2FB"),
        Case("3986 3.5", "http://a/x#f?q", "http://a/x"),
        Case("3986 5.2.4", "http://a/b/../c/./d/..", "http://a/c/"),
        Case("3986 5.2.4", "http://a/../..", "http://a/"),
        Case("3986 6.2.2.3", "http://a/b/%2e%2e/c", "http://a/c"),
        Case("3986 3.2.1", "http://u:p@a/x", "http://a/x"),
        Case("3986 3.4", "http://a?b=/../C", "http://a/?b=/../C"),
        Case("3986 3.4", "http://a/?", "http://a/?"),
        Case("3986 3.2.2", "http://[::1]:8080/", "http://[::1]:8080/"),
        Case("9110 4.2", "file:///etc", "nil"),
        Case("9110 4.2.1", "http:///x", "nil"), Case("3986 3.2.3", "http://a:b/", "nil"),
        Case("3986 3.2.3", "http://a:70000/", "nil"), Case("3986 2", "http://a/b c", "nil"),
        Case("3986 2.1", "http://a/ü", "http://a/%C3%BC"),
    ]

    @Test(arguments: urls) func `URLs are normalized`(_ line: Case) {
        #expect(HTTPURL(line.text)?.text ?? "nil" == line.expected)
    }

    static let references: [Case] = [
        Case("3986 5.4", "next", "http://a/b/next"), Case("3986 5.4", "../g", "http://a/g"),
        Case("3986 5.4", "/g", "http://a/g"), Case("3986 5.4", "//g", "http://g/"),
        Case("3986 5.4", "?y", "http://a/b/c?y"), Case("3986 5.4", "#s", "http://a/b/c?q"),
        Case("3986 5.4", "https://x", "https://x/"), Case("3986 5.4", "file:///x", "nil"),
    ]

    @Test(arguments: references) func `references are resolved against a base URL`(_ line: Case) throws {
        let base = try #require(HTTPURL("http://a/b/c?q"))
        #expect(base.resolving(line.text)?.text ?? "nil" == line.expected)
    }

    static let ranges: [Case] = [
        Case("9110 14.1.2", "bytes=0-4", "0..<5"), Case("9110 14.1.2", "bytes=5-", "5..<10"),
        Case("9110 14.1.2", "bytes=-3", "7..<10"), Case("9110 14.1.2", "bytes=-30", "0..<10"),
        Case("9110 14.1.2", "bytes=8-99", "8..<10"), Case("9110 14.1.2", "bytes=10-", "416"),
        Case("9110 14.1.2", "bytes=-0", "416"), Case("9110 14.1.1", "bytes=5-4", "nil"),
        Case("9110 14.2", "bytes=0-1,3-4", "nil"), Case("9110 14.2", "lines=0-1", "nil"),
        Case("9110 14.1.2", "Bytes=0-0", "0..<1"), Case("9110 14.1.2", "bytes=a-b", "nil"),
        Case("9110 14.1.2", "bytes=0-99999999999999999999", "0..<10"), Case("9110 14.1.2", "bytes=-", "nil"),
    ]

    @Test(arguments: ranges) func `byte ranges are resolved against a body of ten bytes`(_ line: Case) {
        let found = RequestedRange(line.text).map { range in range.bytes(of: 10).map { "\($0)" } ?? "416" }
        #expect(found ?? "nil" == line.expected)
    }

    static let contentRanges: [Case] = [
        Case("9110 14.4", "bytes 0-4/10", "bytes 0-4/10"), Case("9110 14.4", "bytes 0-4/*", "bytes 0-4/*"),
        Case("9110 14.4", "bytes */10", "bytes */10"), Case("9110 14.4", "bytes */*", "nil"),
        Case("9110 14.4", "bytes 4-0/10", "nil"), Case("9110 14.4", "bytes 0-10/10", "nil"),
        Case("9110 14.4", "bytes=0-4/10", "nil"), Case("9110 14.4", "bytes 0-4", "nil"),
    ]

    @Test(arguments: contentRanges) func `Content-Range is parsed and formatted`(_ line: Case) {
        #expect(ContentRange(line.text)?.text ?? "nil" == line.expected)
    }
}
