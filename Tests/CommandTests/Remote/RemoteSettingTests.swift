// SPDX-License-Identifier: Apache-2.0

import DiskCache
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The settings for shared servers, as text.
@Suite(.takesTurns) struct RemoteSettingTests {
    private func setting(_ name: String) throws -> RemoteSetting {
        try #require(RemoteSetting.all.first { $0.name == "remote." + name })
    }

    @Test(arguments: [
        ("servers", "http://a:8080/"), ("servers", "redis://a/0;http://b/,https://c/x"),
        ("servers", "redis+unix:///run/redis.sock"), ("mode", "read"), ("limit", "100ms"),
        ("limit", "1500ms"),
        ("namespace", "team"), ("path", "x/{digest}"), ("format", "plain"), ("minimumSize", "1024"),
        ("maximumSize", "1048576"), ("tags", "a,b"), ("credentials", "/etc/it"),
        ("authorityFile", "/etc/it"), ("certificateFile", "/etc/it"), ("certificateKeyFile", "/etc/it"),
    ])
    func `set accepts the shown text, and unset removes the setting`(name: String, text: String) throws {
        let setting = try setting(name)
        var remote = CacheConfiguration.Remote(levels: [])
        #expect(setting.texts(remote) == nil)
        try setting.assign(text, &remote)
        #expect(setting.texts(remote)?.exact == text)
        setting.unset(&remote)
        #expect(remote == CacheConfiguration.Remote(levels: []))
    }

    @Test func `the help lists all settings`() {
        for setting in RemoteSetting.all { #expect(RemoteSetting.help.contains(setting.name)) }
    }

    @Test func `a server that was configured before keeps its weight`() {
        let before = [[CacheConfiguration.Remote.Server("http://a/", weight: 2)]]
        let after: [[CacheConfiguration.Remote.Server]] = [[.init("http://b/"), .init("http://a/")]]
        #expect(RemoteSetting.kept(after, from: before).joined().map(\.weight) == [1, 2])
    }

    @Test func `the JSON has the keys of the configuration file`() throws {
        var remote = CacheConfiguration.Remote(servers: ["http://a/"])
        remote.tags = ["x"]
        let line = try JSON.line(remote)
        #expect(
            line == """
                {"mode":"readWrite","servers":[{"url":"http://a/"}],"tags":["x"]}

                """
        )
    }
}
