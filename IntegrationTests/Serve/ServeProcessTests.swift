// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// Tests of `diskcache serve` as a process: beside others, terminated, killed, and with its Python client.
@Suite(.takesTurns) struct ServeProcessTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    // MARK: Other processes

    @Test func `changes by another process are seen at once, even for a value in memory`() throws {
        let server = try Server(tool)
        let get = request(#"{"op":"get","key":"k"}"#)
        try server.send(request(#"{"op":"put","key":"k","length":3}"#, "old") + get)
        #expect(try server.answers(2).last?.text == "old")
        let cache = try tool.cache()
        try cache.put("new", forKey: "k")
        try server.send(get)
        #expect(try server.answers(1)[0].text == "new")
        try cache.remove(forKey: "k")
        try server.send(get)
        #expect(try server.answers(1)[0].isFound == false)
        try server.send(request(#"{"op":"put","key":"k","length":4}"#, "back"))
        #expect(try server.answers(1)[0].isStored == true)
        #expect(try cache.get(forKey: "k")?.value == Data("back".utf8))
    }

    @Test func `an answer is sent before the next request arrives`() throws {
        let server = try Server(tool)
        try server.send(request(#"{"op":"hello","id":1}"#) + #"{"op":"put","id":2,"#)
        #expect(try server.answers(1)[0].id == 1)
        try server.send(request(#""key":"k","length":10}"#, "half "))
        try server.send("value")
        #expect(try server.answers(1)[0].isStored == true)
        server.closeInput()
        let (rest, end) = (try server.rest(), try server.wait())
        #expect(rest.isEmpty && end == .exited(0))
        #expect(try tool.run("get", "k").output == "half value")
    }

    // MARK: Termination

    @Test(arguments: 1...5)
    func `every put that was answered before a kill is stored`(round: Int) throws {
        let cache = try tool.cache()
        try cache.put(Data(SeededGenerator.bytes(1 << 16, seed: 1)), forKey: "large")
        let server = try Server(tool)
        // Few enough requests for the pipe, so that none is unsent when the server is gone. The other pipe holds the answer
        // between two puts at most once, so that the server is in the middle of them when it is killed.
        let requests = (0..<200).map { id in
            request(#"{"op":"put","id":\#(id),"key":"k\#(id)","length":6}"#, value(id))
                + request(#"{"op":"get","key":"large"}"#)
        }
        try server.send(requests.joined())
        let first = try server.answers(round * 20)
        server.send(Signal.kill)
        let answered = try first + server.rest()
        #expect(try server.wait() == .killed(.kill))
        #expect(answered.count >= round * 20 && answered.count < 400)
        #expect(answered.allSatisfy { $0.isStored == true || $0.isFound == true })
        for id in answered.compactMap(\.id) {
            #expect(try cache.get(forKey: "k\(id)")?.value == Data(value(id).utf8))
        }
        #expect(try cache.directory.verify().isClean)
    }

    private func value(_ number: Int) -> String {
        String(String(1_000_000 + number).dropFirst())
    }

    @Test(arguments: [Signal.terminate, .interrupt])
    func `a signal ends the server, and an incomplete request is dropped`(signal: Signal) throws {
        let server = try Server(tool)
        try server.send(request(#"{"op":"put","key":"whole","length":1}"#, "v"))
        #expect(try server.answers(1)[0].isStored == true)
        try server.send(request(#"{"op":"put","key":"half","length":10}"#, "half"))
        server.send(signal)
        let (rest, end) = (try server.rest(), try server.wait())
        #expect(rest.isEmpty && end == .exited(0))
        #expect(try tool.run("ls").lines == ["whole"])
    }

    @Test func `a signal ends the server even if its answers are not read`() throws {
        let cache = try tool.cache()
        try cache.put(Data(SeededGenerator.bytes(4 << 20, seed: 1)), forKey: "k")
        let server = try Server(tool)
        try server.send(request(#"{"op":"get","key":"k"}"#))
        // The server is writing the answer, and the rest of it does not fit into the pipe.
        try server.receive()
        server.send(Signal.terminate)
        #expect(try server.wait() == .killed(.terminate))
    }

    @Test func `the server ends without an error message when its output is closed`() throws {
        let line = request(#"{"op":"hello"}"#)
        let input = Data(String(repeating: line, count: 20_000).utf8)
        let run = try tool.shell(#""$TOOL" serve | head -c 1; echo " ${PIPESTATUS[0]}""#, input: input)
        #expect(run.output == "{ 74\n" && run.errorData.isEmpty, "\(run.error)")
    }

    // MARK: Python

    static let hasPython = ["/usr/bin/", "/usr/local/bin/", "/bin/"].contains {
        FileManager.default.isExecutableFile(atPath: $0 + "python3")
    }

    /// Runs the tests of the client with these additional arguments.
    private func python(_ words: String = "") throws -> Tool.Run {
        let script = PackageFiles.root.appendingPathComponent("Examples/python/test_diskcache_client.py").path
        return try tool.shell("DISKCACHE=\"$TOOL\" PYTHONDONTWRITEBYTECODE=1 python3 '\(script)' \(words)")
    }

    @Test(.enabled(if: hasPython, "there is no python3: its client is not tried"))
    func `the Python client passes its tests`() throws {
        let run = try python()
        #expect(run.status == 0, "\(run.error)")
    }

    @Test(.enabled(if: hasPython, "there is no python3: its client is not tried"))
    func `a get over the protocol is at least twenty times as fast as a process per get`() throws {
        let run = try python("--rates")
        try #require(run.status == 0, "\(run.error)")
        let rates = try JSONDecoder().decode([String: Double].self, from: run.outputData)
        print("gets of 4 KiB in a second: \(rates)")
        let processes = try #require(rates["processes"])
        #expect(try #require(rates["requests"]) >= 20 * processes)
        #expect(try #require(rates["batches"]) >= 20 * processes)
    }
}
