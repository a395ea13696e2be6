// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Synchronization
import Testing

@testable import Images

/// What happens where pictures change, and where nobody can say whether they have.
@Suite(.serialized) struct ImageChangeTests {
    private struct Unreachable: Error {}

    private let place: Place
    private let steps = Steps()
    private let server = Server()

    /// What there is now; nil: nobody answers.
    private final class Server: Sendable {
        private let present = Mutex<ImagePipeline.Original?>(nil)

        func offer(_ number: Int) throws {
            let file = try Canvas.painted(400, 300, number: number).encoded(as: .png)
            present.withLock { $0 = ImagePipeline.Original(file: file, version: "\(number)") }
        }

        func stop() { present.withLock { $0 = nil } }

        func answer() throws -> ImagePipeline.Original {
            guard let original = present.withLock({ $0 }) else { throw Unreachable() }
            return original
        }
    }

    init() throws {
        place = try Place()
        try server.offer(1)
    }

    private func pipeline(_ reading: ReadOptions = ImagePipeline.reading) async throws -> ImagePipeline {
        let cache = try await SharedCache.open(at: place.path + "/cache")
        let onStep: @Sendable (ImagePipeline.Step, String) -> Void = { [steps] in steps.note($0, $1) }
        let terms = PutOptions(expires: .days(1), staleFor: .seconds(86_400))
        return ImagePipeline(cache: cache, terms: terms, reading: reading, onStep: onStep) { [server] _ in
            try server.answer()
        }
    }

    @Test func `what has not changed is asked for, and not decoded again`() async throws {
        let pipeline = try await pipeline()
        let first = try await pipeline.picture("a", fitting: 64)
        try await pipeline.recheckAll()
        let second = try await pipeline.picture("a", fitting: 64)
        #expect(steps.all == ["load a", "decode a", "load a"])
        #expect(second?.value.pixels == first?.value.pixels && second?.isStale == false)
        _ = try await pipeline.picture("a", fitting: 64)
        #expect(steps.all.count == 3, "it is good for as long as a new one")
    }

    @Test func `what has changed is decoded again, in each size when it is asked for`() async throws {
        let pipeline = try await pipeline()
        let first = try await pipeline.picture("a", fitting: 64)
        try server.offer(2)
        try await pipeline.recheckAll()
        let second = try await pipeline.picture("a", fitting: 64)
        #expect(steps.all == ["load a", "decode a", "load a", "decode a"])
        #expect(second?.value.middle != first?.value.middle)
    }

    @Test func `where nobody answers the old one stays`() async throws {
        let pipeline = try await pipeline()
        _ = try await pipeline.picture("a", fitting: 64)
        server.stop()
        try await pipeline.recheckAll()
        #expect(try await pipeline.picture("a", fitting: 64)?.isStale == true)
        await #expect(throws: Unreachable.self) { try await pipeline.picture("a", fitting: 32) }
        let strict = try await self.pipeline(ReadOptions())
        await #expect(throws: Unreachable.self) { try await strict.picture("a", fitting: 64) }
    }
}
