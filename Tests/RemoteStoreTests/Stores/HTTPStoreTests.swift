// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import TestSupport
import Testing
import Transport

@testable import RemoteStore

/// What a store of HTTP is asked.
@Suite(.takesTurns) struct HTTPStoreTests {
    @Test func `no proxy of the environment gets to see a store, nor its password`() throws {
        let address = try RemoteAddress("http://store.example:8080/base")
        let store = HTTPStore(
            address,
            try #require(RemotePaths()),
            .action,
            as: .basic(TransportCredentials(user: "user", password: "word")),
            TransportSecurity(),
            longest: 1 << 20,
            over: Transport()
        )
        for method in ["GET", "PUT", "DELETE"] {
            let request = store.makeRequest(method, "/ac/x")
            #expect(request.proxy == .none)
            #expect(request.url == "http://store.example:8080/base/ac/x" && request.method == method)
        }
    }
}
