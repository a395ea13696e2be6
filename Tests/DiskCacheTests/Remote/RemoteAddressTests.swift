// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct RemoteAddressTests {
    @Test(
        "valid URLs are parsed",
        arguments: [
            ("http://cache-1:8080/", "cache-1", 8080, "", "http://cache-1:8080"),
            ("HTTP://Cache-1/a/b/", "cache-1", 80, "/a/b", "http://cache-1"),
            ("https://s3.example/bucket", "s3.example", 443, "/bucket", "https://s3.example"),
            ("http://[::1]:81/x", "::1", 81, "/x", "http://[::1]:81"),
            ("redis://host/2", "host", 6379, "2", "redis://host:6379"),
            ("rediss://host:6380/2", "host", 6380, "2", "rediss://host:6380"),
        ] as [(String, String, UInt16, String, String)]
    )
    func parsed(_ url: String, _ host: String, _ port: UInt16, _ path: String, _ origin: String) throws {
        let address = try RemoteAddress(url)
        #expect(address.host == host && address.port == port && address.path == path)
        #expect(address.origin == origin)
    }

    @Test("a URL of a Unix socket is parsed")
    func socket() throws {
        let address = try RemoteAddress("redis+unix:///run/redis.sock?db=3")
        #expect(address.socketPath == "/run/redis.sock" && address.path == "3")
    }

    @Test(
        "invalid URLs are refused",
        arguments: [
            "", "cache-1:8080", "ftp://host/", "http://", "http://user:secret@host/", "http://host/?a",
            "http://h:0/",
            "http://h:99999/", "http://a b/", "redis+unix://relative", "redis2://host",
            "http://h:+80/", "http://[::1/", "http://::1/", "http://h/#a", "redis://h/x", "redis://h/-1",
            "redis+unix:///s?db=x", "redis+unix:///s?other", "ftp://user:secret@host/",
        ]
    )
    func refused(_ url: String) {
        do throws(ConfigurationFault) {
            _ = try RemoteAddress(url)
            Issue.record("it was taken: \(url)")
        } catch {
            #expect(error.key == "servers" && !error.words.contains("secret"))
        }
    }
}
