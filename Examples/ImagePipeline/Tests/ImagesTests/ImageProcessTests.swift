// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Testing

@testable import Images

/// Processes that show the same pictures of a server at the same time.
@Suite(.serialized, .enabled(if: PictureServer.program != nil, "nginx is not installed"))
struct ImageProcessTests {
    private static let processes = 4
    private static let names = (0..<6).flatMap { ["\($0).jpg", "\($0).png"] }

    private let place: Place
    private let server: PictureServer

    init() throws {
        place = try Place()
        server = try PictureServer(place.path + "/server")
        for (number, name) in Self.names.enumerated() { try offer(name, number) }
    }

    private func path(_ name: String) -> String { place.path + "/" + name }

    /// Makes a picture, or another one in its place, in one step.
    private func offer(_ name: String, _ number: Int) throws {
        let format: PictureFormat = name.hasSuffix("png") ? .png : .jpeg
        // Another length of the file, so that its ETag is another one within the same second.
        let file = try Canvas.painted(640 + number, 480, number: number).encoded(as: format)
        try file.write(to: URL(fileURLWithPath: path("server/files/" + name)), options: .atomic)
    }

    @Test func `of four processes one downloads each picture, and one decodes it`() async throws {
        let lines = try await shown(inRound: 1)
        for name in Self.names {
            for step in ["load", "decode", "computed"] {
                let beginning = "\(step) \(server.url(name))"
                #expect(lines.filter { $0.hasPrefix(beginning) }.count == 1, "\(beginning)")
            }
            expectShown(name, in: lines)
        }
        server.stop()
        #expect(try server.requests().sorted() == Self.names.map { "GET 200 /\($0)" }.sorted())
    }

    @Test func `what has not changed is renewed by a 304, what has changed decoded once`() async throws {
        let first = try await shown(inRound: 1)
        try await recheck()
        let second = try await shown(inRound: 2)
        #expect(second.filter { $0.hasPrefix("load ") }.count == Self.names.count, "each by one of them")
        #expect(!second.contains { $0.hasPrefix("decode ") })
        #expect(pictures(first) == pictures(second))
        try offer("0.png", 99)
        try await recheck()
        let third = try await shown(inRound: 3)
        #expect(third.filter { $0.hasPrefix("decode ") } == ["decode " + server.url("0.png")])
        #expect(pictures(third).subtracting(pictures(second)).allSatisfy { $0.contains("/0.png ") })
        server.stop()
        let requests = try server.requests()
        let count = Self.names.count
        #expect(requests.filter { $0.hasPrefix("GET 200 ") }.count == count + 1)
        #expect(requests.filter { $0.hasPrefix("GET 304 ") }.count == 2 * count - 1)
        #expect(requests.count == 3 * count)
    }

    @Test func `where the server is gone the old pictures are shown`() async throws {
        let first = try await shown(inRound: 1)
        server.stop()
        try await recheck()
        let second = try await shown(inRound: 2)
        #expect(second.filter { $0.hasPrefix("stale ") }.count == Self.processes * Self.names.count)
        #expect(pictures(first) == pictures(second))
    }

    // MARK: Steps

    private func recheck() async throws {
        let cache = try await SharedCache.open(at: path("cache"))
        try await ImagePipeline(cache: cache) { _ in nil }.recheckAll()
        await cache.close()
    }

    /// A line of a picture: where it came from, its URL, its size, and the sum of its pixels.
    private func isPicture(_ line: String) -> Bool { line.split(separator: " ").count == 4 }

    /// The pictures that were shown, without where they came from; those of PNG, which is exact.
    private func pictures(_ lines: [String]) -> Set<String> {
        let exact = lines.filter { isPicture($0) && $0.contains(".png ") }
        return Set(exact.map { line in String(line.drop { $0 != " " }) })
    }

    private func expectShown(_ name: String, in lines: [String]) {
        let shown = lines.filter { isPicture($0) && $0.contains(server.url(name) + " ") }
        #expect(shown.count == Self.processes && shown.allSatisfy { $0.contains(" 64x") }, "\(name)")
        #expect(pictures(shown).count == (name.hasSuffix("png") ? 1 : 0), "\(name)")
    }

    /// The lines that the processes print, which are there at the same time.
    private func shown(inRound round: Int) async throws -> [String] {
        let tests = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let program = tests.deletingLastPathComponent().appendingPathComponent("ImageWorker")
        let (ends, end) = AsyncStream.makeStream(of: Int32.self)
        var processes: [Process] = []
        for number in 0..<Self.processes {
            let output = path("output \(number)")
            try Data().write(to: URL(fileURLWithPath: output))
            let process = Process()
            process.executableURL = program
            process.arguments =
                [path("cache"), "64", String(Self.processes), String(round)] + Self.names.map(server.url)
            process.standardOutput = FileHandle(forWritingAtPath: output)
            process.terminationHandler = { end.yield($0.terminationStatus) }
            try process.run()
            processes.append(process)
        }
        for await status in ends.prefix(processes.count) { #expect(status == 0) }
        return try (0..<Self.processes).flatMap { number in
            try String(contentsOfFile: path("output \(number)"), encoding: .utf8)
                .split(separator: "\n").map(String.init)
        }
    }
}
