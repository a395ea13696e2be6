// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Testing

@testable import Images

@Suite(.serialized) struct ImagePipelineTests {
    private let place: Place
    private let steps = Steps()
    private let files: [String: Data]

    init() throws {
        place = try Place()
        let tall = try Canvas.painted(200, 400, number: 2).encoded(as: .png)
        files = [
            "a.jpg": try Canvas.painted(400, 300, number: 1).encoded(as: .jpeg), "b.png": tall,
            "text.png": Data("text".utf8), "cut.png": tall.prefix(100),
        ]
    }

    /// One with memory of its own, as that of another process.
    private func pipeline() async throws -> ImagePipeline {
        let cache = try await SharedCache.open(at: place.path + "/cache")
        let onStep: @Sendable (ImagePipeline.Step, String) -> Void = { [steps] in steps.note($0, $1) }
        return ImagePipeline(cache: cache, terms: PutOptions(expires: .days(7)), onStep: onStep) { [files] in
            files[$0].map { ImagePipeline.Original(file: $0, version: "1") }
        }
    }

    @Test(arguments: [("a.jpg", 64, 48), ("b.png", 32, 64)])
    func `a picture comes in the size that is asked for`(name: String, width: Int, height: Int) async throws {
        let pipeline = try await pipeline()
        let first = try await pipeline.picture(name, fitting: 64)
        let small = try #require(first).value
        #expect(small.width == width && small.height == height && small.pixels?.count == width * height)
        let second = try await pipeline.picture(name)
        let whole = try #require(second).value
        #expect(whole.file == files[name])
        for (one, other) in zip(small.middle, whole.middle) { #expect(abs(one - other) <= 12) }
        #expect(name == "a.jpg" || small.middle[0] > 0, "transparency is kept")
        // What another process makes of the file.
        let third = try await self.pipeline().picture(name, fitting: 64)
        #expect(third?.source == .disk)
        let read = try #require(third).value
        #expect(read.width == width && read.height == height)
        #expect(name == "a.jpg" || read.pixels == small.pixels, "PNG is exact")
    }

    @Test func `what is small enough stays as it is`() async throws {
        let hit = try await pipeline().picture("a.jpg", fitting: 1000)
        #expect(hit?.value.width == 400 && hit?.value.file == files["a.jpg"])
    }

    @Test func `pixels stay in memory, at what they cost there`() async throws {
        let pipeline = try await pipeline()
        let first = try await pipeline.picture("b.png", fitting: 64)
        let picture = try #require(first).value
        #expect(picture.cost == picture.file.count + 4 * 32 * 64)
        #expect(pipeline.cache.memory.cost == picture.cost, "and the file that it was made from does not")
        let second = try await pipeline.picture("b.png", fitting: 64)
        #expect(first?.source == .computed && second?.source == .memory)
        #expect(second?.value.pixels == picture.pixels)
        #expect(steps.all == ["load b.png", "decode b.png"])
    }

    @Test func `where memory is short pixels go, and come back from the file`() throws {
        let picture = try Picture(file: try #require(files["b.png"]))
        let lesser = try #require(picture.discarded()?.value)
        #expect(lesser.pixels == nil && lesser.cost == picture.file.count)
        #expect(picture.discarded()?.cost == lesser.cost)
        #expect(lesser.discarded()?.cost == nil, "there is nothing left to drop")
        #expect(try lesser.restored().pixels == picture.pixels)
    }

    @Test func `sizes have keys of their own, and each is made once`() async throws {
        let pipeline = try await pipeline()
        for side in [64, 32, nil, 64] { _ = try await pipeline.picture("a.jpg", fitting: side) }
        #expect(steps.all == Array(repeating: ["load a.jpg", "decode a.jpg"], count: 3).flatMap { $0 })
        let keys = try await pipeline.cache.blocking { try $0.entries().map { try $0.get().key ?? "" } }
        #expect(keys.sorted() == ["picture/32/a.jpg", "picture/64/a.jpg", "picture/whole/a.jpg"])
    }

    @Test func `what is removed is so in all sizes, for all`() async throws {
        let (one, other) = (try await pipeline(), try await pipeline())
        for side in [64, nil] { _ = try await one.picture("a.jpg", fitting: side) }
        try await other.remove("a.jpg")
        for side in [64, nil] { _ = try await one.picture("a.jpg", fitting: side) }
        #expect(steps.all == Array(repeating: ["load a.jpg", "decode a.jpg"], count: 4).flatMap { $0 })
    }

    @Test func `what is fetched ahead is on disk, and not in memory`() async throws {
        let pipeline = try await pipeline()
        let names = ["a.jpg", "b.png", "absent.png", "text.png"]
        #expect(await pipeline.prefetch(names, fitting: 64, atOnce: 2) == 2)
        #expect(pipeline.cache.memory.count == 0)
        #expect(await pipeline.prefetch(["a.jpg", "b.png", "absent.png"], fitting: 64) == 2)
        #expect(steps.all.count == 6, "each was loaded once, and two were decoded: \(steps.all)")
        #expect(try await pipeline.picture("a.jpg", fitting: 64)?.source == .disk)
    }

    @Test func `a prefetch that is cancelled ends`() async throws {
        let cache = try await SharedCache.open(at: place.path + "/cache")
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let pipeline = ImagePipeline(cache: cache) { _ in
            ask.yield()
            try await Task.sleep(for: .seconds(3600))
            return nil
        }
        let prefetch = Task { await pipeline.prefetch(["a", "b", "c", "d"], fitting: 64, atOnce: 1) }
        for await _ in asked { break }
        prefetch.cancel()
        #expect(await prefetch.value == 0)
    }

    @Test func `who gives up is free at once, and who waits gets the picture`() async throws {
        let cache = try await SharedCache.open(at: place.path + "/cache")
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let onStep: @Sendable (ImagePipeline.Step, String) -> Void = { [steps] in steps.note($0, $1) }
        let pipeline = ImagePipeline(cache: cache, onStep: onStep) { [files, steps] address in
            if steps.all.count == 1 {
                ask.yield()
                try await Task.sleep(for: .seconds(3600))
            }
            return files[address].map { ImagePipeline.Original(file: $0, version: "1") }
        }
        let first = Task { try await pipeline.picture("a.jpg", fitting: 64) }
        for await _ in asked { break }
        let second = Task { try await pipeline.picture("a.jpg", fitting: 64) }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(try await second.value?.value.width == 64)
        #expect(steps.all == ["load a.jpg", "load a.jpg", "decode a.jpg"])
    }

    @Test(arguments: [64, nil] as [Int?])
    func `what is no picture is an error, and not kept`(side: Int?) async throws {
        let pipeline = try await pipeline()
        for name in ["text.png", "cut.png"] {
            for _ in 1...2 {
                await #expect(throws: PictureError.self) { try await pipeline.picture(name, fitting: side) }
            }
            #expect(steps.all.filter { $0 == "load " + name }.count == 2)
        }
    }

    @Test func `that there is no picture is remembered`() async throws {
        for _ in 1...2 {
            let pipeline = try await pipeline()
            #expect(try await pipeline.picture("absent.png", fitting: 64) == nil)
            #expect(try await pipeline.picture("absent.png") == nil)
        }
        #expect(steps.all == ["load absent.png", "load absent.png"], "once a size")
    }
}
