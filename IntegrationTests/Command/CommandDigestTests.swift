// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `get --digest` and `put --digest`.
@Suite(.takesTurns) struct CommandDigestTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    func put(_ key: String, _ value: String) throws {
        let run = try tool.run(["put", key], input: Data(value.utf8))
        try #require(run.status == 0, "\(run.error)")
    }

    @Test func `a value can be read by its digest until it is collected`() throws {
        try put("k", "hello")
        let digest = "\(Digest(of: Data("hello".utf8)))"
        #expect(try tool.run("get", "--digest", digest).output == "hello")
        let file = tool.path("out")
        #expect(try tool.run("get", "--digest", digest.uppercased(), "-o", file).status == 0)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "hello")
        try put("k", "other")
        #expect(try tool.run("get", "--digest", digest).output == "hello")
        #expect(try tool.run("gc").status == 0)
        let gone = try tool.run("get", "--digest", digest, "-o", file)
        #expect(gone.status == 1 && gone.outputData.isEmpty && gone.errorData.isEmpty)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "hello")
    }

    @Test(arguments: [[], ["--if-absent"]])
    func `a put whose digest differs stores nothing`(options: [String]) throws {
        let digest = "\(Digest(of: Data("hello".utf8)))"
        let words = ["put", "k", "--digest", digest] + options
        let refused = try tool.run(words, input: Data("hellp".utf8))
        #expect(refused.status == 65 && refused.outputData.isEmpty)
        #expect(refused.error.contains("not \(digest): nothing was stored"), "\(refused.error)")
        #expect(refused.error.split(separator: "\n").count == 1)
        #expect(try tool.run("has", "k").status == 1)
        #expect(tool.files("objects").isEmpty && tool.files("entries").isEmpty && tool.files("tmp").isEmpty)
        #expect(try tool.run(words, input: Data("hello".utf8)).status == 0)
        #expect(try tool.run("get", "k").output == "hello")
    }

    @Test func `a put whose digest differs keeps the old value, also with input from a pipe`() throws {
        try put("k", "old")
        let digest = Digest(of: Data("hello".utf8))
        #expect(try tool.shell("head -c 1000000 /dev/zero | \"$TOOL\" put k --digest \(digest)").status == 65)
        #expect(try tool.run("get", "k").output == "old")
        #expect(tool.files("objects").count == 1)
    }
}
