// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of the article *Getting started*: its program is compiled with the tests, and its console sessions are run.
@Suite(.takesTurns) struct TutorialTests {
    private let article: String

    init() throws {
        let articles = PackageFiles.root.appendingPathComponent("Sources/DiskCache/DiskCache.docc")
        let file = articles.appendingPathComponent("GettingStarted.md")
        article = try String(contentsOf: file, encoding: .utf8)
    }

    private func blocks(_ language: String) -> [String] {
        article.components(separatedBy: "```\(language)\n").dropFirst().map {
            $0.components(separatedBy: "\n```")[0] + "\n"
        }
    }

    @Test func `the program equals the one in the article`() throws {
        let file = PackageFiles.tests.appendingPathComponent("Tutorial/main.swift")
        let source = try String(contentsOf: file, encoding: .utf8)
        let program = source.split(separator: "\n", maxSplits: 1)[1].drop { $0.isNewline }
        #expect(blocks("swift").contains { $0 == program })
    }

    @Test func `each command prints what the article shows`() throws {
        let directory = try TemporaryDirectory()
        let programs = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
            .deletingLastPathComponent()
        var script = """
            cd '\(directory.path)'
            export LC_ALL=C PATH='\(programs.path)':$PATH DISKCACHE_DIR=try

            """
        var expected: [[String]] = []
        for block in blocks("console") {
            for line in block.split(separator: "\n") {
                if line.hasPrefix("$ ") {
                    script += "echo '$'; { \(line.dropFirst(2)); } 2>&1\n"
                    expected.append([])
                } else {
                    expected[expected.count - 1].append(String(line))
                }
            }
        }
        #expect(expected.count > 10)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script]
        let pipe = Foundation.Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let found = output.components(separatedBy: "$\n").dropFirst().map {
            $0.split(separator: "\n").map(String.init)
        }
        #expect(Array(found) == expected)
    }
}
