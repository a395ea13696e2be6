// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheCommand
import DiskCacheHTTP
import FoundationEssentials
import RemoteStore
import Transport

/// The checks of the servers through which values are shared.
enum ServerChecks {
    /// The largest acceptable clock skew; beyond it, values expire too early or too late, and signed requests may be
    /// refused.
    private static let tolerableSkew: Duration = .seconds(2)

    /// The time limit for a response of a server.
    private static let patience: Duration = .seconds(5)

    /// Tests each server, and returns the findings.
    static func findings(of remote: CacheConfiguration.Remote) throws(CacheError) -> [Finding] {
        var patient = remote
        patient.limit = patience
        var findings: [Finding] = []
        for report in try ServerProbe.examine(patient) {
            let isHTTP = report.obstacle == nil && report.name.hasPrefix("http")
            let skew = isHTTP ? skew(of: report.name, patient) : nil
            findings += Self.findings(
                report,
                skew: skew,
                limit: remote.limit,
                writes: remote.mode == .readWrite
            )
        }
        return findings
    }

    /// Returns how far a server's clock is ahead, to a second, from the Date field of any response; nil if there is none.
    private static func skew(of url: String, _ remote: CacheConfiguration.Remote) -> Duration? {
        var request = TransportRequest(url, method: "HEAD")
        request.timeLimit = remote.limit
        request.security = remote.security
        request.proxy = .none
        do throws(TransportError) {
            let response = try Transport(mostTransfers: 1).performAndWait(request)
            let now = Date.now.timeIntervalSince1970
            let present = HTTPDate(seconds: Int(now))
            guard let text = response.values("Date").first, let date = HTTPDate(text, now: present) else {
                return nil
            }
            // The server truncates its time to a second, so half a second is added.
            return .seconds(Double(date.seconds) + 0.5 - now)
        } catch {
            return nil
        }
    }

    /// Returns the findings for one server.
    ///
    /// - Parameters:
    ///   - skew: How far the server's clock is ahead of this machine's clock; nil if it is unknown.
    ///   - limit: The longest time for which a get may wait for the server.
    ///   - writes: Whether this machine must be able to write to the server.
    static func findings(
        _ found: ServerProbe.Report,
        skew: Duration?,
        limit: Duration,
        writes: Bool
    ) -> [Finding] {
        let name = found.name
        if let obstacle = found.obstacle {
            let advice = "start it, correct remote.servers, or check the network in between"
            return [.risk(name, "can't be reached: \(obstacle)", advice)]
        }
        var findings: [Finding] = []
        if let span = found.roundTrip {
            let state = "answers in \(CacheActivity.Remote.text(span))"
            let isSlow = span * 2 > limit
            let present = CacheActivity.Remote.text(limit)
            let advice = "raise remote.limit (\(present)), or use a closer server"
            findings.append(isSlow ? .risk(name, state, advice) : .fine(name, state))
        }
        if writes {
            let advice = "allow this machine to write there, or set remote.mode read"
            findings += finding(name, found.storing, "store objects", advice)
        }
        findings += finding(name, found.reading, "return stored objects", "check the network in between")
        let advice = "allow this machine to delete there, or delete old objects by other means"
        findings += finding(name, found.removing, "remove objects", advice)
        if let skew {
            let size = max(skew, .zero - skew)
            let relation = "\(Quantity.text(size)) \(skew < .zero ? "behind" : "ahead of") this machine's"
            let isRight = size <= tolerableSkew
            findings.append(
                isRight
                    ? .fine(name, "its clock agrees with this machine's")
                    : .risk(name, "its clock is \(relation)", "synchronize the clocks: values expire by them")
            )
        }
        return findings
    }

    private static func finding(
        _ name: String,
        _ outcome: ServerProbe.Step?,
        _ verb: String,
        _ advice: String
    ) -> [Finding] {
        switch outcome {
        case nil: []
        case .done: [.fine(name, "can \(verb)")]
        case .failed(let reason): [.risk(name, "can't \(verb): \(reason)", advice)]
        }
    }
}
