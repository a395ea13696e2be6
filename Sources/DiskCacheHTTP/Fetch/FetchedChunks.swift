// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// The body of a response, in chunks.
struct FetchedChunks: AsyncSequence, Sendable {
    typealias Element = Data

    let context: FetchContext
    /// Fetches the response, into a file.
    let fetch: @Sendable () async throws -> Served

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(chunks: self) }

    struct AsyncIterator: AsyncIteratorProtocol {
        let chunks: FetchedChunks
        /// The part of the body that was not returned yet; nil before the fetch.
        var rest: FetchedBody?

        mutating func next() async throws -> Data? {
            try Task.checkCancellation()
            let body: FetchedBody
            if let rest {
                body = rest
            } else {
                body = try await chunks.fetched()
            }
            let context = chunks.context
            let size = 256 * 1024
            switch body {
            case .nothing:
                rest = body
                return nil
            case .data(let data):
                rest = data.count > size ? .data(Data(data.dropFirst(size))) : .nothing
                return data.prefix(size)
            case .file(let file, let range):
                let end = Swift.min(range.upperBound, range.lowerBound + size)
                let chunk = try await context.blocking { () throws(Errno) in
                    try file.bytes(range.lowerBound..<end)
                }
                rest = end < range.upperBound ? .file(file, end..<range.upperBound) : .nothing
                return chunk
            }
        }
    }

    func fetched() async throws -> FetchedBody {
        let served = try await fetch()
        guard (200..<300).contains(served.status) else {
            let words = "\(served.url.place): status \(served.status)"
            throw FetchError(.unsuccessful, words, status: served.status)
        }
        return served.body
    }
}
