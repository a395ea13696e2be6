// SPDX-License-Identifier: Apache-2.0

import DiskCache
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct RemoteChecksTests {
    @Test func `the configuration is reported without a request to a server`() {
        var remote = CacheConfiguration.Remote(servers: ["http://a/", "http://b/"])
        #expect(RemoteChecks.configured(remote, isReachable: true).state == "2 servers, mode readWrite")
        let finding = RemoteChecks.configured(remote, isReachable: false)
        #expect(finding.level == .fallback && finding.state.hasSuffix("but diskcache-net is not installed"))
        remote.mode = .off
        #expect(RemoteChecks.configured(remote, isReachable: false).level == .fine)
    }
}
