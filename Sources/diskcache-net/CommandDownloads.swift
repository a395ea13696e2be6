// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand
import DiskCacheHTTP
import FoundationEssentials

/// The downloads of an `HTTPCache`, adapted to the commands.
struct CommandDownloads: Downloads {
    let http: HTTPCache

    func fetch(
        _ order: FetchOrder,
        to target: FetchTarget,
        progress: @escaping @Sendable (DownloadProgress) -> Void
    ) throws(NetworkFailure) -> Fetched {
        var request = FetchRequest(order)
        switch target {
        case .file(let path): request.output = .file(path)
        case .descriptor(let number): request.output = .descriptor(number)
        }
        request.progress = { state in
            progress(
                DownloadProgress(received: state.received, total: state.total, process: state.joinedProcess)
            )
        }
        do throws(FetchError) {
            return Fetched(try http.fetchAndWait(request))
        } catch {
            throw NetworkFailure(error)
        }
    }
}

extension FetchRequest {
    fileprivate init(_ order: FetchOrder) {
        self.init(order.url)
        // Both enumerations have the raw values of the option.
        mode = FetchMode(rawValue: order.mode.rawValue) ?? .standard
        fields = order.fields.map { (name: $0.name, value: $0.value) }
        timeToLive = order.timeToLive
        staleIfError = order.staleIfError
        digest = order.digest
        maximumSize = order.maximumSize
        timeLimit = order.timeLimit
        if let count = order.retries { retries = count }
        tags = order.tags
    }
}

extension Fetched {
    fileprivate init(_ response: FetchResponse) {
        let prefix = "sha256:"
        self.init(
            status: response.status,
            fields: response.fields.map { FieldLine($0.name, $0.value) },
            url: response.url,
            length: response.length,
            digest: response.digest.map { $0.hasPrefix(prefix) ? String($0.dropFirst(prefix.count)) : $0 },
            age: response.age,
            cacheStatus: response.cacheStatus.text(cache: "diskcache")
        )
        // The body of a success is at its destination.
        rejection = response.body
        let now = HTTPDate(seconds: Int(Date.now.timeIntervalSince1970))
        let line = response.fields.first { $0.name.lowercased() == "last-modified" }
        modified = line.flatMap { HTTPDate($0.value, now: now) }.map { Int64($0.seconds) }
    }
}

extension NetworkFailure {
    fileprivate init(_ error: FetchError) {
        let kind: Kind =
            switch error.code {
            case .invalidURL, .invalidRequest: .invalid
            case .timedOut: .notInTime
            case .tooLarge, .digestMismatch: .wrong
            case .outputFailed: .inputOutput
            case .noSpace: .noSpace
            case .libraryMissing: .missing
            // A proxy's response to a request over http.
            case .unreachable where error.status == 407: .forbidden
            // Caused by the server or an intermediary.
            default: .unreachable
            }
        self.init(kind, error.message)
    }
}
