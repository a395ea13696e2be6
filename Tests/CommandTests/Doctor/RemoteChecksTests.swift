// SPDX-License-Identifier: Apache-2.0

import DiskCache
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The findings of `doctor` about servers.
@Suite(.takesTurns) struct RemoteChecksTests {
    private func healthy() -> RemoteExamination {
        var found = RemoteExamination("http://a/")
        found.roundTrip = .milliseconds(2)
        (found.writing, found.reading, found.removing) = (.done, .done, .done)
        found.clockSkew = .milliseconds(300)
        return found
    }

    private func findings(_ found: RemoteExamination, writes: Bool = true) -> [Finding] {
        RemoteChecks.findings(found, limit: .milliseconds(250), writes: writes)
    }

    private func risks(_ found: RemoteExamination) -> [String] {
        findings(found).filter { $0.level == .risk }.map(\.state)
    }

    @Test func `a healthy server is fine in all checks`() {
        let findings = findings(healthy())
        #expect(findings.count == 5 && findings.allSatisfy { $0.level == .fine && $0.advice == nil })
        #expect(findings.first?.state == "answers in 2.0 ms")
    }

    @Test func `an unreachable server is a single risk`() {
        var found = RemoteExamination("http://a/")
        found.obstacle = "connection refused"
        #expect(risks(found) == ["can't be reached: connection refused"])
    }

    @Test func `a server that takes more than half of the limit is a risk`() {
        var found = healthy()
        found.roundTrip = .milliseconds(126)
        #expect(risks(found) == ["answers in 126.0 ms"])
    }

    @Test func `a refused operation is a risk, and writes are ignored for a reader`() {
        var found = healthy()
        (found.writing, found.removing) = (.failed("403"), nil)
        #expect(risks(found) == ["does not do it (stores): 403"])
        #expect(findings(found, writes: false).allSatisfy { $0.level == .fine })
    }

    @Test(arguments: [(3.0, "ahead of"), (-3.0, "behind")])
    func `a clock that is off by seconds is a risk`(seconds: Double, words: String) {
        var found = healthy()
        found.clockSkew = .seconds(seconds)
        #expect(risks(found) == ["its clock is 3s \(words) this machine's"])
    }

    @Test func `the configuration is reported without a request to a server`() {
        var remote = CacheConfiguration.Remote(servers: ["http://a/", "http://b/"])
        #expect(RemoteChecks.configured(remote, isReachable: true).state == "2 servers, mode readWrite")
        let finding = RemoteChecks.configured(remote, isReachable: false)
        #expect(finding.level == .fallback && finding.state.hasSuffix("but diskcache-net is not installed"))
        remote.mode = .off
        #expect(RemoteChecks.configured(remote, isReachable: false).level == .fine)
    }
}
