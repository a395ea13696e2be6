// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand
@testable import DiskCacheHTTP
@testable import diskcache_net

/// Several downloads at once, from a fake network.
@Suite(.takesTurns) struct FetchRunTests {
    /// Responds with the last path component of the URL as body, and with the status in the query.
    private final class FakeDownloads: Sendable {
        let present = Locked((now: 0, most: 0))
        /// The number of downloads that must have started before any of them continues.
        let crowd: Int
        private let met = Monitored(0)

        init(crowd: Int = 1) {
            self.crowd = crowd
        }

        func fetch(_ request: FetchRequest) throws(FetchError) -> FetchResponse {
            present.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            defer { present.withLock { $0.now -= 1 } }
            met.withLock { $0 += 1 }
            met.wakeAll()
            // If fewer have started, the test fails afterwards.
            _ = met.wait(until: .now + .seconds(60)) { $0 >= crowd ? true : nil }
            request.progress?(FetchProgress(received: 1))
            let parts = request.url.split(separator: "?")
            if parts.last == "gone" { throw FetchError(.unreachable, "gone") }
            let body = Data(String(parts[0].split(separator: "/").last ?? "").utf8)
            let status = parts.count > 1 ? Int(parts[1]) ?? 200 : 200
            do throws(Errno) {
                switch request.output {
                case .memory: break
                case .file(let path):
                    if status >= 400 { break }
                    try OutputFile.write(path) { (file) throws(Errno) in try file.writeAll(body.span) }
                case .descriptor(let number):
                    try FileDescriptor.borrowing(number) { (file) throws(Errno) in
                        if status < 400 { try file.writeAll(body.span) }
                    }
                }
            } catch {
                throw FetchError(.outputFailed, "\(error)")
            }
            var fetched = FetchOutcomeTests.response(status)
            if status >= 400 { fetched.body = body }
            return fetched
        }
    }

    let place: TemporaryDirectory

    init() throws {
        place = try TemporaryDirectory()
    }

    private func run(_ words: [String], with downloads: FakeDownloads) throws -> DiskCacheCommand.ExitStatus {
        var arguments = try FetchCommand.parse(words.map { Array($0.utf8) }, directory: nil)
        try FetchCommand.check(&arguments)
        return try FetchRun(FetchPlan(arguments), directory: place.path) { (request) throws(FetchError) in
            try downloads.fetch(request)
        }.run()
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: "\(place.path)/\(name)", encoding: .utf8)
    }

    @Test func `as many downloads run in parallel as requested, each into its file`() throws {
        let names = (0..<12).map { "f\($0)" }
        var words = ["-p", "4"]
        for name in names { words += ["-o", "\(place.path)/\(name)"] }
        let downloads = FakeDownloads(crowd: 4)
        #expect(try run(words + names.map { "http://host/\($0)" }, with: downloads) == .done)
        #expect(downloads.present.withLock { $0.most } == 4)
        for name in names { #expect(try text(name) == name) }
    }

    @Test func `the first failure determines the exit status, and the other URLs are fetched`() throws {
        let words = ["-o", "\(place.path)/a", "-o", "\(place.path)/b", "-o", "\(place.path)/c"]
        let urls = ["http://host/a?404", "http://host/b?gone", "http://host/c"]
        #expect(try run(words + urls, with: FakeDownloads()) == .miss)
        #expect(try text("c") == "c")
        #expect(!FileManager.default.fileExists(atPath: place.path + "/a"))
        #expect(!FileManager.default.fileExists(atPath: place.path + "/b"))
    }

    @Test func `with include a file has head and body, even for an error`() throws {
        let words = ["-i", "-o", "\(place.path)/a", "-o", "\(place.path)/b"]
        #expect(try run(words + ["http://host/x", "http://host/y?404"], with: FakeDownloads()) == .miss)
        #expect(try text("a").hasPrefix("HTTP/1.1 200 OK\r\n") && text("a").hasSuffix("\r\n\r\nx"))
        #expect(try text("b").hasPrefix("HTTP/1.1 404 Not Found\r\n") && text("b").hasSuffix("\r\n\r\ny"))
    }
}
