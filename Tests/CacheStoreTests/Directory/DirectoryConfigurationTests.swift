// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct DirectoryConfigurationTests {
    private func parsed(_ text: String) throws -> DirectoryConfiguration {
        try DirectoryConfiguration(json: Array(text.utf8))
    }

    @Test func `all keys are read as documented`() throws {
        let configuration = try parsed(
            """
            {"maximumSize": 2147483648, "maximumEntries": 100000, "minimumFree": "12.5%", "maximumAge": 0.5,
             "maximumIdleTime": 604800, "maximumValueSize": 67108864, "eventLog": 1048576}
            """
        )
        #expect(configuration.limits.maximumSize == .bytes(2_147_483_648))
        #expect(configuration.limits.maximumEntries == 100_000)
        #expect(configuration.limits.minimumFree == .percent(12.5))
        #expect(configuration.limits.maximumAge == .milliseconds(500))
        #expect(configuration.limits.maximumIdleTime == .seconds(604_800))
        #expect(configuration.limits.maximumValueSize == .bytes(67_108_864))
        #expect(configuration.limits.eventLogSize == .bytes(1_048_576))
        #expect(configuration.unknownKeys.isEmpty)
    }

    @Test func `a missing or null key is no limit, and a log of 0 bytes is none`() throws {
        #expect(try parsed("{}") == DirectoryConfiguration())
        #expect(try parsed(#"{"maximumSize": null, "eventLog": 0}"#) == DirectoryConfiguration())
        #expect(try parsed(#"{"assumeLocal": false}"#) == DirectoryConfiguration())
        #expect(try parsed(#"{"minimumFree": 5000}"#).limits.minimumFree == .bytes(.bytes(5000)))
    }

    @Test(arguments: [
        "", "[]", "7", "{", #"{"maximumSize": "2G"}"#, #"{"maximumSize": -1}"#, #"{"maximumSize": 1.5}"#,
        #"{"maximumSize": 1e300}"#, #"{"maximumAge": "7d"}"#, #"{"maximumAge": -1}"#,
        #"{"maximumEntries": true}"#,
        #"{"minimumFree": "10"}"#, #"{"minimumFree": "101%"}"#, #"{"minimumFree": "-1%"}"#,
        #"{"minimumFree": -1}"#,
        #"{"maximumAge": 1e10}"#, "\u{0}",
    ])
    func `invalid values are rejected and named`(text: String) {
        let problem = #expect(throws: JSONProblem.self) { try parsed(text) }
        if let key = text.split(separator: "\"").dropFirst().first, let problem {
            #expect(problem.words.contains(key))
        }
    }

    @Test func `a written configuration can be read, and unknown keys stay`() throws {
        var configuration = try parsed(#"{"later": {"a": [1, 2.5, "x", null, true]}, "maximumAge": 1.25}"#)
        #expect(configuration.unknownKeys == ["later"])
        configuration.limits.maximumSize = .bytes(1 << 52)
        configuration.limits.minimumFree = .percent(7)
        let text = String(decoding: try configuration.json(for: "config.json"), as: UTF8.self)
        #expect(try parsed(text) == configuration)
        #expect(text.contains(#""minimumFree" : "7%""#) && text.contains("4503599627370496"))
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary
        let later = (object?["later"] as? NSDictionary)?["a"] as? NSArray
        #expect(later == [1, 2.5, "x", NSNull(), true] as NSArray)
    }
}

/// The configuration file in the directory, which processes follow.
@Suite(.takesTurns) struct FollowedConfigurationTests {
    let fixture: StoreFixture
    let other: Store

    init() throws {
        fixture = try StoreFixture()
        other = try StoreFixture.open(fixture.path)
    }

    private func write(_ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: fixture.path + "/config.json"))
    }

    @Test func `stores see each other's changes when they look and do not undo them`()
        throws
    {
        try fixture.store.configure { $0.limits.maximumEntries = 5 }
        #expect(fixture.store.configuration.limits.maximumEntries == 5)
        try other.configure { $0.limits.maximumValueSize = .bytes(7) }
        #expect(other.configuration.limits.maximumEntries == 5)
        fixture.store.followConfiguration()
        #expect(fixture.store.configuration.limits.maximumValueSize == .bytes(7))
        try FileManager.default.removeItem(atPath: fixture.path + "/config.json")
        fixture.store.followConfiguration()
        #expect(fixture.store.configuration == DirectoryConfiguration())
        #expect(fixture.store.configurationFailure == nil)
    }

    @Test func `a syntax error keeps the limits and is reported until it is fixed`() throws {
        try fixture.store.configure { $0.limits.maximumEntries = 5 }
        try write(#"{"maximumEntries": }"#)
        fixture.store.followConfiguration()
        #expect(fixture.store.configuration.limits.maximumEntries == 5)
        #expect(fixture.store.configurationFailure?.code == .badConfiguration)
        fixture.store.followConfiguration()
        #expect(fixture.store.configurationFailure?.code == .badConfiguration)
        #expect(throws: CacheError.self) { try fixture.store.configure { $0.limits.maximumEntries = 6 } }
        #expect(
            try String(contentsOfFile: fixture.path + "/config.json", encoding: .utf8)
                == #"{"maximumEntries": }"#
        )
        try write(#"{"maximumEntries": 66}"#)
        fixture.store.followConfiguration()
        #expect(fixture.store.configuration.limits.maximumEntries == 66)
        #expect(fixture.store.configurationFailure == nil)
    }

    @Test func `a process that has never read the limits stores nothing until it has`() throws {
        try fixture.store.configure { $0.limits.maximumEntries = 5 }
        try fixture.put("value", "old")
        try write(#"{"maximumEntries": }"#)
        let store = try StoreFixture.open(fixture.path)
        let bytes = Array("value".utf8)
        let record = Record(content: Content(of: bytes.span), created: .now)
        func put() throws { _ = try store.put(bytes.span, for: Digest(ofKey: "new"), record) }
        let error = #expect(throws: CacheError.self) { try put() }
        #expect(error?.code == .badConfiguration && error?.path?.hasSuffix("config.json") == true)
        #expect(try store.get(Digest(ofKey: "old"), now: .now, allowingStale: false) != nil)
        // A store that has read the limits continues.
        try fixture.put("value", "other")
        try write(#"{"maximumEntries": 7}"#)
        #expect(throws: Never.self) { try put() }
    }

    @Test func `a process that has read the absence of limits continues after a syntax error`() throws {
        try fixture.put("value", "old")
        try write(#"{"maximumEntries": }"#)
        fixture.store.followConfiguration()
        #expect(fixture.store.configurationFailure?.code == .badConfiguration)
        try fixture.put("value", "new")
        #expect(try fixture.get("new") == "value")
    }

    @Test func `the configuration is read later if it cannot be read now`() async {
        await #expect(processExitsWith: .success) {
            let fixture = try StoreFixture()
            try StoreFixture.open(fixture.path).configure { $0.limits.maximumEntries = 7 }
            var before = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before)
            var none = before
            none.rlim_cur = 0
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
            fixture.store.followConfiguration()
            let failure = fixture.store.configurationFailure
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before)
            #expect(failure?.cause == .tooManyOpenFiles)
            fixture.store.followConfiguration()
            #expect(fixture.store.configuration.limits.maximumEntries == 7)
            #expect(fixture.store.configurationFailure == nil)
        }
    }

    @Test func `a link or pipe in place of the file is not followed and does not block`() throws {
        let path = fixture.path + "/config.json"
        try write(#"{"maximumEntries": 1}"#)
        try FileManager.default.moveItem(atPath: path, toPath: fixture.directory.path + "/elsewhere")
        try FileManager.default.createSymbolicLink(
            atPath: path,
            withDestinationPath: fixture.directory.path + "/elsewhere"
        )
        fixture.store.followConfiguration()
        #expect(fixture.store.configuration.limits.maximumEntries == nil)
        #expect(fixture.store.configurationFailure != nil)
        try FileManager.default.removeItem(atPath: path)
        #expect(mkfifo(path, 0o600) == 0)
        fixture.store.followConfiguration()
        #expect(fixture.store.configuration.limits.maximumEntries == nil)
    }
}
