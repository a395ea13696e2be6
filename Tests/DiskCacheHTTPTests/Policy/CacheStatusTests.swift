// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct CacheStatusTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let section: String
        let expected: String
        let status: CacheStatus
        var testDescription: String { "\(section): \(expected)" }

        init(_ section: String, _ expected: String, _ change: (inout CacheStatus) -> Void) {
            var status = CacheStatus()
            change(&status)
            (self.section, self.expected, self.status) = (section, expected, status)
        }
    }

    static let cases: [Case] = [
        Case("9211 2", "diskcache") { _ in },
        Case("9211 2.1", "diskcache; hit; ttl=376") { ($0.isHit, $0.timeToLive) = (true, 376) },
        Case("9211 2.4", "diskcache; hit; ttl=-412") { ($0.isHit, $0.timeToLive) = (true, -412) },
        Case("9211 2.1", "diskcache; hit") {
            ($0.isHit, $0.forward, $0.forwardStatus) = (true, .stale, 304)
            ($0.isStored, $0.isCollapsed) = (true, true)
        },
        Case("9211 2.2", "diskcache; fwd=uri-miss; stored") { ($0.forward, $0.isStored) = (.uriMiss, true) },
        Case("9211 2.2", "diskcache; fwd=vary-miss") { $0.forward = .varyMiss },
        Case("9211 2.2", "diskcache; fwd=bypass; detail=no-store") {
            ($0.forward, $0.detail) = (.bypass, "no-store")
        },
        Case("9211 2.3", "diskcache; fwd=stale; fwd-status=304; ttl=60") {
            ($0.forward, $0.forwardStatus, $0.timeToLive) = (.stale, 304, 60)
        },
        Case("9211 2.6", "diskcache; fwd=uri-miss; stored; collapsed") {
            ($0.forward, $0.isStored, $0.isCollapsed) = (.uriMiss, true, true)
        },
        Case("9211 2.7", #"diskcache; hit; key="https://a/x?\"y\"""#) {
            ($0.isHit, $0.key) = (true, #"https://a/x?"y""#)
        },
        Case("9211 2.8", #"diskcache; hit; detail="back\\slash ??""#) {
            ($0.isHit, $0.detail) = (true, #"back\slash ü"#)
        },
        Case("9211 2.8", #"diskcache; hit; detail="1st""#) { ($0.isHit, $0.detail) = (true, "1st") },
        Case("9211 2.8", "diskcache; hit; detail=a:/b") { ($0.isHit, $0.detail) = (true, "a:/b") },
        Case("9211 2.8", #"diskcache; hit; detail="""#) { ($0.isHit, $0.detail) = (true, "") },
    ]

    @Test(arguments: cases) func `Cache-Status is formatted as in RFC 9211`(_ line: Case) {
        #expect(line.status.description == line.expected)
    }

    @Test(arguments: [("a cache", "\"a cache\"; hit"), ("*", "*; hit"), ("a.b:80", "a.b:80; hit")])
    func `the cache's name is a token or a quoted string`(_ name: String, _ expected: String) {
        var status = CacheStatus()
        status.isHit = true
        #expect(status.text(cache: name) == expected)
    }
}
