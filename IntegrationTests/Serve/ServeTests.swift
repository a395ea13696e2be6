// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// Tests of the answers of `diskcache serve`.
@Suite(.takesTurns) struct ServeTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    /// Returns the answers to an input, which the server must accept without an error.
    func answers(_ requests: String...) throws -> [Frame] {
        let run = try tool.run("serve", input: Data(requests.joined().utf8))
        #expect(run.status == 0 && run.errorData.isEmpty, "\(run.error)")
        return try Frame.all(of: run)
    }

    // MARK: Values

    @Test func `answers come in the order of the requests, with their ids`() throws {
        let frames = try answers(
            request(#"{"op":"put","id":1,"key":"k","length":5}"#, "hello"),
            request(#"{"op":"get","id":"two","key":"k"}"#),
            request(#"{"op":"get","key":"other"}"#),
            request(#"{"op":"has","id":4,"key":"k"}"#)
        )
        try #require(frames.count == 4)
        #expect(frames[0].id == 1 && frames[0].isStored == true)
        #expect(frames[1].fields["id"] as? String == "two" && frames[1].text == "hello")
        #expect(frames[1].fields["source"] as? String == "memory")
        #expect(frames[2].fields["id"] == nil && frames[2].isFound == false && frames[2].bytes.isEmpty)
        #expect(frames[3].id == 4 && frames[3].isFound == true)
        #expect(try tool.run("get", "k").output == "hello")
    }

    @Test func `a value may be any bytes, including those of a request`() throws {
        let lines = request(#"{"op":"removeAll","all":true}"#) + "\n\n\0"
        let frames = try answers(
            request(#"{"op":"put","key":"a","length":\#(lines.utf8.count)}"#, lines),
            request(#"{"op":"put","key":"b","length":0}"#),
            request(#"{"op":"get","key":"a"}"#),
            request(#"{"op":"get","key":"b"}"#)
        )
        #expect(frames.count == 4 && frames[2].text == lines)
        #expect(frames[3].isFound == true && frames[3].bytes.isEmpty)
    }

    @Test func `a large value passes through pipes`() throws {
        let value = Data(SeededGenerator.bytes(3_000_001, seed: 1))
        let input = Data(request(#"{"op":"put","key":"k","length":3000001}"#).utf8) + value
        let run = try tool.run("serve", input: input + Data(request(#"{"op":"get","key":"k"}"#).utf8))
        #expect(try Frame.all(of: run).last?.bytes == value)
    }

    @Test func `a get of several keys is answered key by key`() throws {
        let frames = try answers(
            request(#"{"op":"put","key":"a","length":1}"#, "1"),
            request(#"{"op":"put","key":"b","length":1}"#, "2"),
            request(#"{"op":"get","id":7,"keys":["b","none","a","b"]}"#),
            request(#"{"op":"get","id":8,"keys":[]}"#)
        )
        try #require(frames.count == 8)
        #expect(frames[2...6].allSatisfy { $0.id == 7 })
        #expect(frames[2...5].map(\.text) == ["2", "", "1", "2"])
        #expect(frames[2...5].map(\.isFound) == [true, false, true, true])
        #expect(frames[2...5].map { $0.fields["index"] as? Int } == [0, 1, 2, 3])
        #expect(frames[2...5].allSatisfy { $0.fields["more"] as? Bool == true })
        #expect(frames[6].fields["hits"] as? Int == 3 && frames[6].fields["misses"] as? Int == 1)
        #expect(frames[6].fields["more"] == nil)
        #expect(frames[7].id == 8 && frames[7].fields["hits"] as? Int == 0)
    }

    @Test func `put stores the options of a value, and entry returns them`() throws {
        let terms = """
            "ttl":"7d","staleFor":60.5,"etag":"e","lastModified":"m","contentType":"c/t","tags":["x"],\
            "metadata":{"a":"b"}
            """
        let frames = try answers(
            request(#"{"op":"put","key":"k","length":1,\#(terms)}"#, "v"),
            request(#"{"op":"entry","key":"k"}"#),
            request(#"{"op":"get","key":"k","entry":true}"#),
            request(#"{"op":"entry","key":"other"}"#)
        )
        try #require(frames.count == 4)
        for frame in frames[1...2] {
            let entry = try #require(frame.fields["entry"] as? [String: Any])
            #expect(entry["etag"] as? String == "e" && entry["lastModified"] as? String == "m")
            #expect(entry["contentType"] as? String == "c/t" && entry["tags"] as? [String] == ["x"])
            #expect(entry["metadata"] as? [String: String] == ["a": "b"])
            let expires = try date(entry["expires"])
            #expect(try expires.timeIntervalSince(date(entry["created"])) == 7 * 86400)
            #expect(try abs(date(entry["staleUntil"]).timeIntervalSince(expires) - 60.5) < 0.001)
        }
        #expect(frames[3].isFound == false && frames[3].fields["entry"] == nil)
    }

    @Test func `an expired value is returned if stale values are accepted`() throws {
        let frames = try answers(
            request(#"{"op":"put","key":"k","length":1,"ttl":0,"staleFor":3600}"#, "v"),
            request(#"{"op":"get","key":"k"}"#),
            request(#"{"op":"get","key":"k","stale":true}"#),
            request(#"{"op":"has","key":"k"}"#)
        )
        #expect(frames.map(\.isFound) == [nil, false, true, false])
        #expect(frames[2].fields["stale"] as? Bool == true && frames[2].text == "v")
    }

    @Test func `touch changes the expiration, and ifAbsent keeps an existing value`() throws {
        let frames = try answers(
            request(#"{"op":"put","key":"k","length":1,"ifAbsent":true}"#, "1"),
            request(#"{"op":"put","key":"k","length":1,"ifAbsent":true}"#, "2"),
            request(#"{"op":"touch","key":"k","expiresAt":"2100-01-01"}"#),
            request(#"{"op":"entry","key":"k"}"#),
            request(#"{"op":"touch","key":"other"}"#),
            request(#"{"op":"get","key":"k"}"#)
        )
        #expect(frames.prefix(2).map(\.isStored) == [true, false])
        #expect(frames[2].isFound == true && frames[4].isFound == false && frames[5].text == "1")
        let entry = try #require(frames[3].fields["entry"] as? [String: Any])
        #expect(entry["expires"] as? String == "2100-01-01T00:00:00.000Z")
    }

    @Test func `remove and removeAll remove the selected keys and no others`() throws {
        let frames = try answers(
            request(#"{"op":"put","key":"a","length":1,"tags":["t"]}"#, "1"),
            request(#"{"op":"put","key":"b","length":1}"#, "2"),
            request(#"{"op":"put","key":"c","length":1}"#, "3"),
            request(#"{"op":"removeAll","tag":"t"}"#),
            request(#"{"op":"remove","key":"a"}"#),
            request(#"{"op":"remove","keys":["a","b"]}"#),
            // A selection that is not supported, and a missing one.
            request(#"{"op":"removeAll","glob":"z"}"#),
            request(#"{"op":"removeAll"}"#),
            request(#"{"op":"has","key":"c"}"#),
            request(#"{"op":"removeAll","all":true}"#),
            request(#"{"op":"has","key":"c"}"#)
        )
        try #require(frames.count == 11)
        #expect(frames[4].fields["removed"] as? Int == 0 && frames[5].fields["removed"] as? Int == 1)
        #expect(frames[6...7].map(\.code) == ["badRequest", "badRequest"])
        #expect(frames[8].isFound == true && frames[10].isFound == false)
        #expect(frames[3].fields["done"] as? Bool == true && frames[9].fields["done"] as? Bool == true)
    }

    @Test func `removeAll removes the keys with a prefix, which must not be empty`() throws {
        let frames = try answers(
            request(#"{"op":"put","key":"a/1","length":1}"#, "1"),
            request(#"{"op":"put","key":"b/1","length":1}"#, "2"),
            request(#"{"op":"removeAll","prefix":"a/"}"#),
            request(#"{"op":"has","key":"a/1"}"#),
            request(#"{"op":"removeAll","prefix":""}"#),
            request(#"{"op":"removeAll","prefix":"b/","tag":"t"}"#),
            request(#"{"op":"has","key":"b/1"}"#)
        )
        try #require(frames.count == 7)
        #expect(frames[2].fields["done"] as? Bool == true && frames[3].isFound == false)
        #expect(frames[4...5].map(\.code) == ["badRequest", "badRequest"] && frames[6].isFound == true)
    }

    @Test func `values are read from files and written to files`() throws {
        makeFile(tool.path("in"), "from a file")
        let frames = try answers(
            request(#"{"op":"put","key":"k","file":"\#(tool.path("in"))"}"#),
            request(#"{"op":"get","key":"k","file":"\#(tool.path("out"))"}"#),
            request(#"{"op":"get","key":"other","file":"\#(tool.path("other"))"}"#),
            request(#"{"op":"put","key":"k","file":"\#(tool.path("none"))"}"#)
        )
        #expect(frames.map(\.isStored) == [true, nil, nil, nil])
        #expect(frames.map(\.isFound) == [nil, true, false, nil])
        #expect(frames.last?.code == "inputOutput")
        #expect(try String(contentsOfFile: tool.path("out"), encoding: .utf8) == "from a file")
        #expect(!FileManager.default.fileExists(atPath: tool.path("other")))
    }

    @Test func `hello and stats describe the protocol and the cache`() throws {
        let frames = try answers(
            request(#"{"op":"hello"}"#),
            request(#"{"op":"get","key":"k"}"#),
            request(#"{"op":"stats"}"#),
            request(#"{"op":"stats","scan":true}"#)
        )
        #expect(frames[0].fields["protocol"] as? Int == 1)
        #expect(frames[0].fields["path"] as? String == tool.directory)
        #expect(frames[0].fields["longestValue"] as? Int == 256 << 20)
        #expect(frames[2].fields["totals"] is [String: Any] && frames[3].fields["totals"] is [String: Any])
        #expect(frames[2].fields["entries"] == nil && frames[3].fields["entries"] as? Int == 0)
    }

    // MARK: Invalid requests

    @Test func `an invalid request is an error with its id, and the next one is answered`() throws {
        let etag = String(repeating: "e", count: 70_000)
        let mistakes: [(String, String)] = [
            (#"{"op":"fly","id":1}"#, "unknownOperation"), (#"{"id":1}"#, "badRequest"),
            (#"{"op":"get","id":1}"#, "badRequest"), (#"{"op":"get","id":1,"key":""}"#, "badRequest"),
            (#"{"op":"get","id":1,"key":5}"#, "badRequest"), (#"{"op":5,"id":1}"#, "badRequest"),
            (#"{"op":"get","id":1,"keys":["a",""]}"#, "badRequest"),
            (#"{"op":"get","id":1,"key":"a","keys":["a"]}"#, "badRequest"),
            (#"{"op":"get","id":1,"keys":["a"],"file":"f"}"#, "badRequest"),
            (#"{"op":"get","id":1,"key":"a","file":"f\u0000g"}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"a","file":"f\u0000g"}"#, "badRequest"),
            (#"{"op":"get","id":1,"key":"a","file":""}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","file":""}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k"}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"file":"f"}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"ttl":-1}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"ttl":"soon"}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"ttl":1,"expiresAt":"2030-01-01"}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"renew":true}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"metadata":{"":"x"}}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"staleFor":1e12}"#, "badRequest"),
            (#"{"op":"put","id":1,"key":"k","length":0,"etag":"\#(etag)"}"#, "invalidArgument"),
        ]
        let input = mistakes.map { request($0.0) + request(#"{"op":"hello"}"#) }.joined()
        let frames = try Frame.all(of: tool.run("serve", input: Data(input.utf8)))
        try #require(frames.count == 2 * mistakes.count)
        for (index, (line, code)) in mistakes.enumerated() {
            let frame = frames[2 * index]
            #expect(frame.code == code && frame.id == 1 && !frame.isFatal, "\(line.prefix(100))")
            #expect(!frame.message.isEmpty && frames[2 * index + 1].code == nil)
        }
        #expect(try tool.run("ls").outputData.isEmpty)
    }

    @Test func `unknown fields are ignored, and so are empty lines and carriage returns`() throws {
        let frames = try answers(
            "\n",
            request(#"{"op":"has","key":"k","colour":{"red":[1,null]},"id":1}"#),
            "\n\n",
            request(#"{"op":"has","key":"k","id":2}"# + "\r"),
            request(#" { "id" : 3 , "op" : "has", "key" : "k" } "#)
        )
        #expect(frames.map(\.id) == [1, 2, 3] && frames.map(\.isFound) == [false, false, false])
    }

    @Test func `the bytes of a request are skipped even if it fails`() throws {
        let bytes = "{\"op\":\"put\"}\n"
        let frames = try answers(
            request(#"{"op":"fly","id":1,"length":\#(bytes.utf8.count)}"#, bytes),
            request(#"{"op":"has","id":2,"key":"k","length":\#(bytes.utf8.count)}"#, bytes),
            request(#"{"op":"put","id":3,"length":\#(bytes.utf8.count)}"#, bytes),
            request(#"{"op":"hello","id":4}"#)
        )
        #expect(frames.map(\.id) == [1, 2, 3, 4])
        #expect(frames.map(\.code) == ["unknownOperation", nil, "badRequest", nil])
    }

    @Test func `a value over the length limit is an error, and the next request is answered`() throws {
        let value = String(repeating: "x", count: 200_000)
        let large = request(#"{"op":"put","id":1,"key":"k","length":200000}"#, value)
        let input = large + request(#"{"op":"put","id":2,"key":"k","length":5}"#, "short")
        let frames = try Frame.all(of: tool.run(["serve", "--max-value", "64K"], input: Data(input.utf8)))
        #expect(frames.map(\.code) == ["badRequest", nil] && frames[1].isStored == true)
    }

    /// Inputs after which the start of the next request is unknown.
    static let broken = [
        "hello\n", "[1]\n", "\"op\"\n", "{\"op\":\"get\"\n",
        request(#"{"op":"put","key":"x","length":-1}"#),
        request(#"{"op":"put","key":"x","length":"5"}"#, "hello"),
        request(#"{"op":"put","key":"x","length":1.5}"#), request(#"{"op":"put","key":"x","length":1e99}"#),
        request(#"{"op":"put","key":"x","length":5}"#, "hell"),
        request(#"{"op":"put","key":"x","length":9223372036854775807}"#, "hell"),
        #"{"op":"put","key":"x""#, String(repeating: " ", count: (1 << 20) + 1) + "{}\n",
        String(repeating: "[", count: 100_000) + "\n",
    ]

    @Test(arguments: broken.indices)
    func `malformed input gets a final error, and the requests before it are executed`(index: Int) throws {
        let input = request(#"{"op":"put","id":1,"key":"k","length":1}"#, "v") + Self.broken[index]
        // The rest of the input is not read, because part of a value might look like a request.
        let run = try tool.run("serve", input: Data(input.utf8))
        let frames = try Frame.all(of: run)
        #expect(run.status == 65 && run.errorData.isEmpty, "\(run.error)")
        try #require(frames.count == 2)
        #expect(frames[0].isStored == true)
        #expect(frames[1].code == "malformed" && frames[1].isFatal && frames[1].id == nil)
        #expect(try tool.run("ls").lines == ["k"])
    }

    /// A byte that is invalid in UTF-8, and half of a surrogate pair in the notation of JSON.
    static let notText = [Data([0xFF]), Data("\\ud800".utf8)]

    @Test(arguments: notText.indices)
    func `a key that is not valid text is refused, and nothing is stored`(index: Int) throws {
        let start = Data(#"{"op":"put","key":"a"#.utf8)
        let end = Data(request(#"","length":1}"#, "v").utf8)
        let run = try tool.run("serve", input: start + Self.notText[index] + end)
        let frames = try Frame.all(of: run)
        #expect(["badRequest", "malformed"].contains(frames.first?.code) && frames.count == 1)
        #expect(try tool.run("ls").outputData.isEmpty)
    }

    @Test func `without a usable cache there is one line of error and no answer`() throws {
        makeFile(tool.directory)
        let run = try tool.run("serve", input: Data(request(#"{"op":"hello"}"#).utf8))
        #expect(run.status == 73 && run.outputData.isEmpty, "\(run.error)")
        #expect(run.error.hasPrefix("diskcache: "), "\(run.error)")
    }

    @Test(.enabled(if: Mount.isAllowed, "mounting a file system needs root"))
    func `a full disk is an error, and stored values are still returned`() throws {
        let mount = try Mount("tmpfs", options: "size=4m")
        var input = Data()
        for index in 0..<100 {
            input += Data(request(#"{"op":"put","id":\#(index),"key":"key \#(index)","length":50000}"#).utf8)
            input += SeededGenerator.bytes(50_000, seed: UInt64(index))
        }
        for index in 0..<100 { input += Data(request(#"{"op":"get","key":"key \#(index)"}"#).utf8) }
        let run = try tool.run(["--dir", mount.path + "/cache", "serve", "--memory", "0"], input: input)
        let frames = try Frame.all(of: run)
        #expect(run.status == 0 && frames.count == 200, "\(run.error)")
        let puts = frames.prefix(100)
        let failed = puts.filter { $0.isStored != true }
        #expect(!failed.isEmpty && failed.count < 95 && failed.allSatisfy { $0.code == "noSpace" })
        for (index, (put, get)) in zip(puts, frames.dropFirst(100)).enumerated() {
            #expect(get.isFound == (put.isStored ?? false))
            guard get.isFound == true else { continue }
            #expect(get.bytes == Data(SeededGenerator.bytes(50_000, seed: UInt64(index))))
        }
    }
}
