// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform
import Transport

/// A response before it is delivered to the caller.
struct Served: Sendable {
    var status: Int
    var fields: HTTPFields
    var url: HTTPURL
    var body = FetchedBody.nothing
    var digest: String?
    /// The age in seconds.
    var age: Int?
    var cacheStatus = CacheStatus()
    /// The error that a stale response replaces.
    var replaced: FetchError?
    /// Whether the response is stale and must be revalidated in the background.
    var needsRevalidation = false

    /// Returns a 504, for a mode that does not allow a request while no stored response is usable.
    static func unavailable(_ url: HTTPURL) -> Served {
        var served = Served(status: 504, fields: [:], url: url)
        served.cacheStatus.detail = "not-cached"
        return served
    }

    /// Returns the request that follows a redirect, or nil if this response is not a redirect.
    func redirect(of request: HTTPRequest) throws(FetchError) -> HTTPRequest? {
        guard [301, 302, 303, 307, 308].contains(status), request.method == "GET" || request.method == "HEAD",
            let location = fields.first("Location")
        else { return nil }
        guard let target = request.url.resolving(location) else {
            throw FetchError(.unsupportedRedirect, "\(url.place): redirects to neither http nor https")
        }
        var next = request
        next.url = target
        next.fields.remove(["Host"])
        if target.origin != request.url.origin {
            // Credentials are meant for the original server only.
            next.fields.remove(request.secrets.map(\.name))
        }
        return next
    }

    /// Delivers the body to its destination; blocks.
    func delivered(to output: FetchRequest.Output) throws(FetchError) -> FetchResponse {
        var response = FetchResponse(
            status: status,
            fields: fields.lines.map { ($0.name, $0.value) },
            url: url.text,
            body: Data(),
            length: Int64(body.length),
            digest: digest,
            age: age.map { .seconds($0) },
            cacheStatus: cacheStatus
        )
        let isSuccess = (200..<300).contains(status)
        var place = "the body"
        do throws(Errno) {
            switch output {
            case .file(let path) where isSuccess:
                place = path
                try OutputFile.write(path) { (file) throws(Errno) in try body.write(to: file) }
            case .descriptor(let number) where isSuccess:
                place = "descriptor \(number)"
                try FileDescriptor.borrowing(number) { (file) throws(Errno) in try body.write(to: file) }
            case .memory: response.body = try body.data()
            case .file, .descriptor: response.body = try beginning.data()
            }
        } catch {
            throw FetchError(writing: place, isDestination: true, error)
        }
        return response
    }

    /// The first MiB of an error's body, which is not written to the caller's file.
    private var beginning: FetchedBody {
        let most = 1 << 20
        return switch body {
        case .nothing: .nothing
        case .data(let data): .data(data.prefix(most))
        case .file(let file, let range):
            .file(file, range.lowerBound..<min(range.upperBound, range.lowerBound + most))
        }
    }
}
