// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import DiskCache
import FoundationEssentials
import Platform
import Transport

/// Tests each server with a small object, regardless of its breaker.
package enum ServerProbe {
    /// The outcome of one request.
    package enum Step: Sendable, Equatable {
        case done
        case failed(String)
    }

    /// The results for one server.
    package struct Report: Sendable {
        /// The server's address, without credentials.
        package var name: String
        /// Why the server is unusable; nil if it has answered.
        package var obstacle: String?
        /// The median time of a few lookups that miss.
        package var roundTrip: Duration?
        /// The outcome of storing an object; nil if that was not tried because the server is configured as read-only.
        package var storing: Step?
        /// Whether the stored object was returned unchanged, or why a lookup was refused; nil if no lookup was refused
        /// and nothing was stored.
        package var reading: Step?
        package var removing: Step?
    }

    private static let looks = 3
    /// The time to live of the object, in case it can't be removed.
    private static let lifetime: Duration = .seconds(60)

    /// Tests all servers of a configuration; each request may take as long as the configured limit.
    ///
    /// - Throws: if the configuration, or the file of credentials, is invalid.
    package static func examine(_ configuration: CacheConfiguration.Remote) throws(CacheError) -> [Report] {
        let credentials = try RemoteCredentials(from: configuration.credentials)
        let transport = Transport(mostTransfers: 1)
        var reports: [Report] = []
        for server in configuration.levels.joined() {
            let terms = CircuitBreaker.Terms()
            let remote = try RemoteServer(server, configuration, credentials, over: transport, terms)
            reports.append(examine(remote, configuration))
        }
        return reports
    }

    private static func examine(_ server: RemoteServer, _ configuration: CacheConfiguration.Remote) -> Report
    {
        var report = Report(name: server.name)
        let key = Digest(ofKey: "doctor \(UInt64.random(in: 0 ... .max))", in: .upkeep)
        var end: ContinuousClock.Instant { ContinuousClock.now + configuration.limit }
        var times: [Duration] = []
        for _ in 0..<looks {
            let begin = ContinuousClock.now
            do throws(RemoteFailure) {
                _ = try server.client.get(key, until: end)
            } catch {
                // A server that refuses a request has answered.
                guard [.refused, .denied, .wrong].contains(error.kind) else {
                    report.obstacle = error.message
                    return report
                }
                report.reading = .failed(error.message)
            }
            times.append(ContinuousClock.now - begin)
        }
        report.roundTrip = times.sorted()[looks / 2]
        guard configuration.mode == .readWrite else { return report }
        let parcel = parcel(for: key)
        report.storing = step { () throws(RemoteFailure) in
            _ = try server.client.putIfNewer(key, parcel, onlyReplacing: false, upTo: .highest, until: end)
        }
        guard report.storing == .done else { return report }
        report.reading = step { () throws(RemoteFailure) in
            let found = try server.client.get(key, until: end)
            guard let found, found.bytes == parcel.bytes, found.digest == parcel.digest else {
                throw RemoteFailure(.wrong, found == nil ? "it is not there" : "it is another object")
            }
        }
        report.removing = step { () throws(RemoteFailure) in
            try server.client.remove(key, until: end)
        }
        return report
    }

    /// Returns an entry with 64 unique bytes.
    private static func parcel(for key: Digest) -> RemoteEntry {
        let bytes = Data("\(key)".utf8)
        let content = Content(of: bytes.span)
        var record = Record(content: content, created: .now)
        record.expires = Timestamp.now + lifetime
        return RemoteEntry(
            record: record.encoded(for: key),
            bytes: bytes,
            digest: content.digest,
            lifetime: lifetime
        )
    }

    private static func step(_ body: () throws(RemoteFailure) -> Void) -> Step {
        do throws(RemoteFailure) {
            try body()
            return .done
        } catch {
            return .failed(error.message)
        }
    }
}
