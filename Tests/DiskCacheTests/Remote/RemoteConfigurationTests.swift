// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// The remote servers in `config.json`.
@Suite(.takesTurns) struct RemoteConfigurationTests {
    @Test func `a configuration survives a round trip through JSON`() throws {
        var remote = CacheConfiguration.Remote(servers: ["http://cache-1:8080/", "redis://host:6379/0"])
        #expect(try CacheConfiguration.Remote(json: remote.json) == remote)
        remote.levels.append([.init("https://s3.example/bucket", weight: 2, kind: .s3, region: "eu-west-1")])
        remote.mode = .read
        remote.format = .plain
        remote.namespace = "team"
        remote.path = "/cache/{digest}"
        remote.limit = .milliseconds(80)
        remote.minimumSize = 10
        remote.maximumSize = 1000
        remote.tags = ["a"]
        remote.authorityFile = "/etc/diskcache/authority.pem"
        remote.certificateFile = "/etc/diskcache/client.pem"
        remote.certificateKeyFile = "/etc/diskcache/client.key"
        remote.credentials = "/etc/diskcache/credentials"
        #expect(try CacheConfiguration.Remote(json: remote.json) == remote)
    }

    @Test(arguments: ["https://s3.example/a%20b", "https://s3.example/bucket"])
    func `a path on S3 has neither an encoded byte nor a query`(url: String) {
        var remote = CacheConfiguration.Remote(levels: [[.init(url, kind: .s3)]])
        if url.hasSuffix("bucket") { remote.path = "/{kind}/{digest}?x=1" }
        #expect(throws: ConfigurationFault.self) { try remote.check() }
        remote.levels[0][0].kind = nil
        #expect(throws: Never.self) { try remote.check() }
    }

    @Test func `the documentation's example is parsed`() throws {
        let text = """
            {"servers": [{"url": "http://cache-1:8080/", "weight": 1, "kind": "http"}, {"url": "redis://h:1/0"}],
             "path": "{namespace}/{kind}/{digest}", "format": "action", "namespace": "team", "mode": "readWrite",
             "limit": "250ms", "minimumSize": 0, "maximumSize": 16777216, "tags": [], "later": {"x": 1},
             "credentials": "/etc/diskcache/credentials"}
            """
        let remote = try CacheConfiguration.Remote(json: Array(text.utf8))
        #expect(remote.levels.count == 1 && remote.levels[0].count == 2)
        #expect(remote.limit == .milliseconds(250) && remote.namespace == "team" && remote.isActive)
    }

    @Test(
        "invalid settings are refused",
        arguments: [
            "[]", #"{"mode": "sometimes"}"#, #"{"limit": "soon"}"#, #"{"limit": "-1s"}"#, #"{"format": "x"}"#,
            #"{"servers": [{"url": "http://a", "weight": -1}]}"#,
            #"{"servers": [{"url": "http://a", "kind": "ftp"}]}"#,
            #"{"minimumSize": 2, "maximumSize": 1}"#, #"{"limit": "2h"}"#, #"{"limit": "0.1ms"}"#,
            #"{"servers": [{"url": "http://a:70000/"}]}"#, #"{"namespace": "a/b"}"#, #"{"namespace": ".."}"#,
            #"{"servers": [{"url": "http://a/", "kind": "redis"}]}"#, #"{"path": "{digest}/.."}"#,
        ]
    )
    func refused(_ text: String) {
        #expect(throws: CacheError.self) { try CacheConfiguration.Remote(json: Array(text.utf8)) }
    }

    @Test("invalid settings can be read, to correct them")
    func unchecked() throws {
        let text = #"{"servers": [{"url": "http://a:0/"}], "namespace": "..", "limit": "3600000ms"}"#
        let remote = try CacheConfiguration.Remote(unchecked: Array(text.utf8))
        #expect(remote.namespace == ".." && remote.limit == .seconds(3600))
        #expect(throws: ConfigurationFault.self) { try remote.check() }
    }

    @Test("times are parsed", arguments: [("250ms", 250), ("1.5s", 1500), ("1m", 60_000), ("1h", 3_600_000)])
    func times(_ text: String, _ milliseconds: Int) {
        #expect(CacheConfiguration.Remote.duration(text) == .milliseconds(milliseconds))
    }

    @Test func `the directory stores the remote configuration alongside its limits`() throws {
        let directory = try TemporaryDirectory()
        let cache = try SharedCache(at: directory.path + "/cache")
        #expect(try cache.directory.remoteConfiguration() == nil)
        let remote = CacheConfiguration.Remote(servers: ["http://cache-1"])
        try cache.directory.setRemoteConfiguration(remote)
        try cache.directory.updateLimits { $0.maximumEntries = 10 }
        #expect(throws: CacheError.self) {
            try cache.directory.setRemoteConfiguration(CacheConfiguration.Remote(servers: ["cache-1"]))
        }
        let other = try SharedCache(at: directory.path + "/cache")
        #expect(try other.directory.remoteConfiguration() == remote)
        try other.directory.setRemoteConfiguration(nil)
        #expect(try other.directory.remoteConfiguration() == nil)
        #expect(try other.directory.limits().maximumEntries == 10)
    }
}
