// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `diskcache get --batch`.
@Suite(.takesTurns) struct GetBatchTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    @Test func `keys are answered in order, each as often as it is named`() throws {
        let cache = try tool.cache()
        try cache.put("1", forKey: "a")
        try cache.put("two\nlines", forKey: "b c")
        let run = try tool.run("get", "--batch", input: Data("b c\nnone\na\nb c\n".utf8))
        let frames = try Frame.all(of: run)
        #expect(run.status == 1 && run.errorData.isEmpty, "one of them is a miss")
        #expect(frames.map { $0.fields["key"] as? String } == ["b c", "none", "a", "b c"])
        #expect(frames.map(\.isFound) == [true, false, true, true])
        #expect(frames.map(\.text) == ["two\nlines", "", "1", "two\nlines"])
    }

    @Test func `the status is 0 if all keys are found, or if there are no keys`() throws {
        try tool.cache().put("1", forKey: "a")
        // The last line needs no newline.
        let run = try tool.run("get", "--batch", input: Data("a\na".utf8))
        let frames = try Frame.all(of: run)
        #expect(run.status == 0 && frames.count == 2)
        let none = try tool.run("get", "--batch")
        #expect(none.status == 0 && none.outputData.isEmpty)
    }

    @Test func `with --null a key may be any text that ls prints`() throws {
        let cache = try tool.cache()
        let keys = ["a\nb", "-x", "é", "\u{1B}[2J", "e\u{301}"]
        for key in keys { try cache.put(key, forKey: key) }
        let run = try tool.shell("\"$TOOL\" ls --null | \"$TOOL\" get --batch --null")
        let frames = try Frame.all(of: run)
        #expect(run.status == 0 && frames.count == keys.count)
        // Compared as bytes: two of them are the same text, written in two ways.
        #expect(frames.allSatisfy { ($0.fields["key"] as? String).map { Data($0.utf8) } == $0.bytes })
        #expect(!run.output.contains("\u{1B}[2J\""), "no key speaks to the terminal")
    }

    @Test func `a scope is prepended to each key, and the answers omit it`() throws {
        let cache = try tool.cache()
        try cache.put("outside", forKey: "k")
        try cache.put("inside", forKey: "s/k")
        let (input, scope) = (Data("k\nother\n".utf8), ["DISKCACHE_SCOPE": "s/"])
        for run in [
            try tool.run("get", "--batch", "--scope", "s/", input: input),
            try tool.run("get", "--batch", input: input, environment: scope),
        ] {
            let frames = try Frame.all(of: run)
            #expect(frames.map(\.text) == ["inside", ""])
            #expect(frames.map { $0.fields["key"] as? String } == ["k", "other"])
        }
        let whole = try tool.run("get", "--batch", "--scope", "", input: input, environment: scope)
        #expect(try Frame.all(of: whole).map(\.text) == ["outside", ""])
    }

    @Test func `values of any length are returned completely`() throws {
        let cache = try tool.cache()
        let lengths = [0, 1, 65_535, 65_536, 65_537, 3_000_000]
        for length in lengths {
            try cache.put(Data(SeededGenerator.bytes(length, seed: UInt64(length))), forKey: "\(length)")
        }
        let input = Data(lengths.map { "\($0)\n" }.joined().utf8)
        for frames in [
            try Frame.all(of: tool.run("get", "--batch", input: input)),
            try Frame.all(of: tool.shell("\"$TOOL\" get --batch | cat", input: input)),
        ] {
            #expect(frames.map(\.bytes.count) == lengths)
            for (frame, length) in zip(frames, lengths) {
                #expect(frame.bytes == Data(SeededGenerator.bytes(length, seed: UInt64(length))))
            }
        }
    }

    @Test func `--stale returns an expired value`() throws {
        let terms = PutOptions(expires: .expired, staleFor: .seconds(3600))
        try tool.cache().put("v", forKey: "k", options: terms)
        let input = Data("k\n".utf8)
        #expect(try tool.run("get", "--batch", input: input).status == 1)
        #expect(try Frame.all(of: tool.run("get", "--batch", "--stale", input: input))[0].text == "v")
    }

    @Test func `without a cache every key is a miss, and no cache is created`() throws {
        let run = try tool.run("get", "--batch", input: Data("a\nb\n".utf8))
        let frames = try Frame.all(of: run)
        #expect(run.status == 1 && frames.map(\.isFound) == [false, false])
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }

    /// Inputs with an invalid second line: not UTF-8, empty, and longer than a key can be.
    static let wrong = [
        Data([0x61, 0x0A, 0xFF, 0x0A]), Data("a\n\nb\n".utf8), Data("a\n".utf8) + Data(count: 1 << 21),
    ]

    @Test(arguments: wrong.indices)
    func `an invalid key is an error after the answers to the keys before it`(index: Int) throws {
        try tool.cache().put("1", forKey: "a")
        let run = try tool.run("get", "--batch", input: Self.wrong[index])
        #expect(run.status == 64 && run.error.hasPrefix("diskcache: get: "), "\(run.error)")
        #expect(try Frame.all(of: run).map(\.text) == ["1"])
    }

    @Test func `a reader gets each answer before it sends the next key`() throws {
        try tool.cache().put("1", forKey: "a")
        let script = """
            coproc "$TOOL" get --batch
            for i in 1 2 3; do
                echo a >&${COPROC[1]}; read -r line <&${COPROC[0]}; read -rN 1 value <&${COPROC[0]}
                echo "$value"
            done
            """
        #expect(try tool.shell(script).output == "1\n1\n1\n")
    }
}
