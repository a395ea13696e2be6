// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand
import TestSupport
import Testing

@testable import RemoteStore
@testable import diskcache_net

/// The findings of `doctor` about servers.
@Suite(.takesTurns) struct ServerChecksTests {
    private func healthy() -> ServerProbe.Report {
        var found = ServerProbe.Report(name: "http://a/")
        found.roundTrip = .milliseconds(2)
        (found.storing, found.reading, found.removing) = (.done, .done, .done)
        return found
    }

    private func findings(
        _ found: ServerProbe.Report,
        skew: Duration = .milliseconds(300),
        writes: Bool = true
    ) -> [Finding] {
        ServerChecks.findings(found, skew: skew, limit: .milliseconds(250), writes: writes)
    }

    private func risks(_ found: ServerProbe.Report, skew: Duration = .milliseconds(300)) -> [String] {
        findings(found, skew: skew).filter { $0.level == .risk }.map(\.state)
    }

    @Test func `a healthy server is fine in all checks`() {
        let findings = findings(healthy())
        #expect(findings.count == 5 && findings.allSatisfy { $0.level == .fine && $0.advice == nil })
        #expect(findings.first?.state == "answers in 2.0 ms")
    }

    @Test func `an unreachable server is a single risk`() {
        var found = ServerProbe.Report(name: "http://a/")
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
        (found.storing, found.removing) = (.failed("403"), nil)
        #expect(risks(found) == ["can't store objects: 403"])
        #expect(findings(found, writes: false).allSatisfy { $0.level == .fine })
    }

    @Test(arguments: [(3.0, "ahead of"), (-3.0, "behind")])
    func `a clock that is off by seconds is a risk`(seconds: Double, words: String) {
        #expect(risks(healthy(), skew: .seconds(seconds)) == ["its clock is 3s \(words) this machine's"])
    }
}
