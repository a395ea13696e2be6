// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import TestSupport
import Testing

@testable import RemoteStore
@testable import Transport

@Suite(.takesTurns) struct RemoteAddressTests {
    @Test(
        "URLs",
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

    @Test("a unix socket")
    func socket() throws {
        let address = try RemoteAddress("redis+unix:///run/redis.sock?db=3")
        #expect(address.socketPath == "/run/redis.sock" && address.path == "3")
        #expect(address.place(TransportSecurity()) == .path("/run/redis.sock"))
    }

    @Test(
        "what is none",
        arguments: [
            "", "cache-1:8080", "ftp://host/", "http://", "http://user:secret@host/", "http://host/?a",
            "http://h:0/",
            "http://h:99999/", "http://a b/", "redis+unix://relative", "redis2://host",
        ]
    )
    func refused(_ url: String) {
        do throws(CacheError) {
            _ = try RemoteAddress(url)
            Issue.record("it was taken: \(url)")
        } catch {
            #expect(error.code == .badConfiguration)
            #expect(!error.message.contains("secret"))
        }
    }
}

@Suite(.takesTurns) struct RemoteCredentialsTests {
    private let text = """
        # comment = no:thing
        host:8080 = a:b:c
        host = d:e
        redis.example =   :only secret
        /run/redis.sock = u:p
        nonsense
        """

    @Test("lines, the more exact first")
    func lines() throws {
        let credentials = RemoteCredentials(text: text)
        #expect(credentials.entry(for: try RemoteAddress("http://host:8080"))?.secret == "b:c")
        #expect(credentials.entry(for: try RemoteAddress("http://host:8081"))?.user == "d")
        let redis = credentials.entry(for: try RemoteAddress("redis://redis.example"))
        #expect(redis?.user == "" && redis?.secret == "only secret")
        #expect(credentials.entry(for: try RemoteAddress("redis+unix:///run/redis.sock"))?.secret == "p")
        #expect(credentials.entry(for: try RemoteAddress("http://other")) == nil)
        #expect(!"\(String(describing: redis))".contains("only secret"))
    }

    @Test("a file that others may read is refused")
    func trust() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/credentials"
        makeFile(path, text)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        do throws(CacheError) {
            _ = try RemoteCredentials(from: path)
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .untrusted && !error.message.contains("secret"))
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let credentials = try RemoteCredentials(from: path)
        #expect(credentials.entry(for: try RemoteAddress("http://host"))?.user == "d")
    }
}
