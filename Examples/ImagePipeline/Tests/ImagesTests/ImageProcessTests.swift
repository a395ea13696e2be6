// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Images

/// Processes that show the same pictures at the same time.
@Suite(.serialized) struct ImageProcessTests {
    private let place: Place

    init() throws {
        place = try Place()
        try FileManager.default.createDirectory(atPath: path("pictures"), withIntermediateDirectories: true)
    }

    private func path(_ name: String) -> String { place.path + "/" + name }

    @Test func `of four processes one loads each picture, and one decodes it`() async throws {
        let names = (0..<6).flatMap { ["\($0).jpg", "\($0).png"] }
        for (number, name) in names.enumerated() {
            let format: PictureFormat = name.hasSuffix("png") ? .png : .jpeg
            let file = try Canvas.painted(640, 480, number: number).encoded(as: format)
            try file.write(to: URL(fileURLWithPath: path("pictures/" + name)))
        }
        let lines = try await outputs(ofProcesses: 4)
        #expect(lines.count == 6 * names.count, "two steps, and a picture in each process")
        for name in names {
            for step in ["load", "decode", "computed"] {
                let count = lines.filter { $0 == "\(step) \(name)" || $0.hasPrefix("\(step) \(name) ") }.count
                #expect(count == 1, "\(step) \(name)")
            }
            // Where it came from, its name, its size, and the sum of its pixels.
            let shown = lines.map { $0.split(separator: " ") }.filter { $0.count == 4 && $0[1] == name }
            #expect(shown.count == 4 && shown.allSatisfy { $0[2] == "64x48" }, "\(name)")
            #expect(name.hasSuffix("jpg") || Set(shown.map { $0[3] }).count == 1, "PNG is exact: \(name)")
        }
    }

    /// The lines that so many processes print, which are there at the same time.
    private func outputs(ofProcesses count: Int) async throws -> [String] {
        let tests = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let program = tests.deletingLastPathComponent().appendingPathComponent("ImageWorker")
        let (ends, end) = AsyncStream.makeStream(of: Int32.self)
        var processes: [Process] = []
        for number in 0..<count {
            let output = path("output \(number)")
            try Data().write(to: URL(fileURLWithPath: output))
            let process = Process()
            process.executableURL = program
            process.arguments = [path("cache"), path("pictures"), "64", String(count)]
            process.standardOutput = FileHandle(forWritingAtPath: output)
            process.terminationHandler = { end.yield($0.terminationStatus) }
            try process.run()
            processes.append(process)
        }
        for await status in ends.prefix(processes.count) { #expect(status == 0) }
        return try (0..<count).flatMap { number in
            try String(contentsOfFile: path("output \(number)"), encoding: .utf8)
                .split(separator: "\n").map(String.init)
        }
    }
}
