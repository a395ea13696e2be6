// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import DiskCache
import FoundationEssentials
import Platform
import Transport

/// Asks servers one by one, whatever their breakers say, with a small object of its own.
package enum ServerProbe {
    /// How one request went.
    package enum Step: Sendable, Equatable {
        case done
        case failed(String)
    }

    /// What came of one server.
    package struct Report: Sendable {
        /// Its address, without credentials.
        package var name: String
        /// Why it is of no use at all; nil: it has answered.
        package var obstacle: String?
        /// The median of a few looks for what is not there.
        package var roundTrip: Duration?
        /// nil: not tried, as nothing is to be written there.
        package var storing: Step?
        /// Whether what was stored came back as it was, or why a look is refused; nil: nothing was stored.
        package var reading: Step?
        package var removing: Step?
    }

    private static let looks = 3
    /// So that it goes by itself where it can't be removed.
    private static let lifetime: Duration = .seconds(60)

    /// Asks all servers of a configuration; each request may take as long as its limit says.
    ///
    /// - Throws: where the configuration, or the file of credentials, makes no sense.
    package static func examine(_ configuration: CacheConfiguration.Remote) throws(CacheError) -> [Report] {
        let credentials = try RemoteCredentials(from: configuration.credentials)
        let transport = Transport(mostTransfers: 1)
        var reports: [Report] = []
        for server in configuration.levels.joined() {
            let terms = Breaker.Terms()
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
                // One that refuses has answered.
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
        report.storing = step { () throws(RemoteFailure) in try server.client.put(key, parcel, until: end) }
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

    /// 64 bytes that nobody else has, with their record.
    private static func parcel(for key: Digest) -> RemoteParcel {
        let bytes = Data("\(key)".utf8)
        let content = Content(of: bytes.span)
        var record = Record(content: content, created: .now)
        record.expires = Timestamp.now + lifetime
        return RemoteParcel(
            record: RecordCodec.encode(record, for: key),
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
