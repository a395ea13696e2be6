// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import TestSupport
import Testing

@testable import RemoteStore
@testable import Transport

@Suite(.takesTurns) struct RemoteCredentialsTests {
    private let text = """
        # comment = no:thing
        host:8080 = a:b:c
        host = d:e
        redis.example =   :only secret
        /run/redis.sock = u:p
        nonsense
        """

    @Test("more specific lines take precedence")
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
