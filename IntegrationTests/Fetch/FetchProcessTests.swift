// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

/// Tests of fetches from nginx by processes that share only the directory.
@Suite(.takesTurns, .enabled(if: Nginx.program != nil, "nginx is not installed"))
struct FetchProcessTests {
    private static let size = 20 << 20

    private let directory: TemporaryDirectory
    private let nginx: Nginx

    init() throws {
        directory = try TemporaryDirectory()
        nginx = try Nginx()
    }

    private func path(_ name: String) -> String { directory.path + "/" + name }

    private func start(_ url: String, _ number: Int = 0, isWaiting: Bool = false, _ more: String...) throws
        -> FetchingProcess
    {
        let words = [path("cache"), url, path("out\(number)"), isWaiting ? path("go") : "-"]
        let process = try FetchingProcess(words + more)
        #expect(process.line() == "ready")
        return process
    }

    /// Fetches in a separate process, and returns the line that it prints.
    private func fetch(_ url: String, _ more: String...) throws -> String {
        let words = [path("cache"), url, path("out"), "-"]
        let process = try FetchingProcess(words + more)
        #expect(process.line() == "ready")
        return process.line()
    }

    private func content(_ name: String) -> Data? { FileManager.default.contents(atPath: path(name)) }

    /// The inode numbers and lengths of all objects.
    private var objects: [[Int]] {
        directory.files(below: "cache/objects").map { name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: path("cache/objects/" + name))
            let number = attributes?[.systemFileNumber] as? Int
            return [number ?? -1, (attributes?[.size] as? Int) ?? -1]
        }
    }

    private var partialLength: Int {
        let names = directory.files(below: "cache/tmp").filter { $0.hasPrefix("part-") }
        let attributes = names.first.flatMap {
            try? FileManager.default.attributesOfItem(atPath: path("cache/tmp/" + $0))
        }
        return attributes?[.size] as? Int ?? 0
    }

    @Test func `eight processes that want one URL send one request`() throws {
        let body = noise(count: Self.size, seed: 1)
        try nginx.put(body, at: "fresh/film")
        let probes = try (0..<8).map { try start(nginx.url("fresh/film"), $0, isWaiting: true) }
        makeFile(path("go"))
        let lines = probes.map { $0.line() }
        #expect(lines.allSatisfy { $0.hasPrefix("200 \(Self.size) sha256:\(Digest(of: body)) ") }, "\(lines)")
        for number in 0..<8 { #expect(content("out\(number)") == body) }
        waitUntil("nginx has logged it") { !nginx.log.isEmpty }
        #expect(nginx.log.map { $0.prefix(4) } == [["GET", "/fresh/film", "200", "\(Self.size)"]])
        #expect(partialLength == 0)
    }

    @Test func `the next process continues the download of a killed process`() throws {
        let body = noise(count: Self.size, seed: 2)
        try nginx.put(body, at: "slow/film")
        let victim = try start(nginx.url("slow/film"))
        waitUntil("a part is there") { partialLength >= 1 << 20 }
        victim.kill()
        let there = partialLength
        #expect(there < Self.size)
        let line = try fetch(nginx.url("slow/film"))
        #expect(line.hasPrefix("200 \(Self.size) sha256:\(Digest(of: body)) "), "\(line)")
        #expect(content("out") == body)
        waitUntil("nginx has logged both") { nginx.log.count == 2 }
        let last = try #require(nginx.log.first { $0[2] == "206" })
        #expect(last[4] == "bytes=\(there)-" && last[3] == "\(Self.size - there)")
    }

    @Test func `a waiting process continues the download of a killed process`() throws {
        let body = noise(count: Self.size, seed: 3)
        try nginx.put(body, at: "slow/film")
        let victim = try start(nginx.url("slow/film"))
        waitUntil("a part is there") { partialLength >= 1 << 20 }
        let probes = try (1..<4).map { try start(nginx.url("slow/film"), $0) }
        victim.kill()
        let lines = probes.map { $0.line() }
        #expect(lines.allSatisfy { $0.hasPrefix("200 \(Self.size) ") }, "\(lines)")
        for number in 1..<4 { #expect(content("out\(number)") == body) }
        waitUntil("nginx has logged both") { nginx.log.count >= 2 }
        #expect(nginx.log.filter { $0[2] == "200" }.count == 1, "of the one that was killed")
        #expect(nginx.log.filter { $0[2] == "206" }.count == 1)
    }

    @Test func `one conditional request refreshes an expired response, and no object is written`() throws {
        let body = noise(count: 1 << 20, seed: 4)
        try nginx.put(body, at: "stale/film")
        #expect(try fetch(nginx.url("stale/film")).contains("stored"))
        let before = objects
        let line = try fetch(nginx.url("stale/film"))
        #expect(line.contains("fwd=stale; fwd-status=304"), "\(line)")
        #expect(content("out") == body)
        waitUntil("nginx has logged both") { nginx.log.count == 2 }
        let last = try #require(nginx.log.last)
        #expect(last[2] == "304" && last[3] == "0" && last[5] != "-")
        #expect(objects == before)
    }

    @Test func `with nginx stopped a stale response is returned if allowed, and else one error`() throws {
        let body = noise(count: 1 << 20, seed: 5)
        try nginx.put(body, at: "stale/film")
        _ = try fetch(nginx.url("stale/film"))
        nginx.stop()
        let stale = try fetch(nginx.url("stale/film"))
        #expect(stale.hasPrefix("200 \(1 << 20) ") && stale.contains("stale-if-error"), "\(stale)")
        #expect(content("out") == body)
        let error = try fetch(nginx.url("stale/film"), "0")
        #expect(error.hasPrefix("error unreachable http://127.0.0.1:\(nginx.port)/stale/film: "), "\(error)")
    }
}

/// A process that fetches, and is killed when this object is released.
private final class FetchingProcess: Sendable {
    private let process: Process
    private let output: FileHandle

    init(_ arguments: [String]) throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: BuiltCommand.probes)
        process.arguments = ["fetch"] + arguments
        let pipe = Foundation.Pipe()
        process.standardOutput = pipe
        output = pipe.fileHandleForReading
        try process.run()
    }

    deinit { Glibc.kill(process.processIdentifier, SIGKILL) }

    /// Kills the process.
    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Returns the next line of the output.
    func line() -> String {
        var line = Data()
        while let byte = try? output.read(upToCount: 1), byte != Data("\n".utf8), !byte.isEmpty {
            line += byte
        }
        return String(decoding: line, as: UTF8.self)
    }
}
