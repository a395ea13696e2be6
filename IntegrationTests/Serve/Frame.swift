// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

/// An answer of `serve`: a line of JSON, and the bytes that follow it.
struct Frame {
    let fields: [String: Any]
    let bytes: Data

    /// Returns the complete frames at the beginning of `data`, and the end of the last one.
    static func complete(in data: Data) throws -> (frames: [Frame], end: Int) {
        var frames: [Frame] = []
        var start = 0
        while let newline = data[start...].firstIndex(of: UInt8(ascii: "\n")) {
            let object = try JSONSerialization.jsonObject(with: Data(data[start..<newline]))
            let fields = try #require(object as? [String: Any])
            let end = newline + 1 + (fields["length"] as? Int ?? 0)
            guard end <= data.count else { break }
            frames.append(Frame(fields: fields, bytes: Data(data[(newline + 1)..<end])))
            start = end
        }
        return (frames, start)
    }

    /// Returns all frames of an output, which must contain nothing else.
    static func all(of run: Tool.Run) throws -> [Frame] {
        let (frames, end) = try complete(in: run.outputData)
        #expect(end == run.outputData.count, "nothing is cut off")
        return frames
    }

    var id: Int? { fields["id"] as? Int }
    var text: String { String(decoding: bytes, as: UTF8.self) }
    var isFound: Bool? { fields["found"] as? Bool }
    var isStored: Bool? { fields["stored"] as? Bool }
    private var error: [String: Any]? { fields["error"] as? [String: Any] }
    var code: String? { error?["code"] as? String }
    var message: String { error?["message"] as? String ?? "" }
    var isFatal: Bool { error?["fatal"] as? Bool ?? false }
}

/// Returns a request: a line, and the value that follows it.
func request(_ json: String, _ value: String = "") -> String {
    json + "\n" + value
}

/// A process of `diskcache serve` with which a test communicates.
final class Server {
    private var process: ChildProcess
    /// The incomplete answer at the end of the output so far.
    private var received = Data()
    /// The answers that the test has not taken yet.
    private var frames: [Frame] = []

    init(_ tool: Tool, _ options: String...) throws {
        process = try ChildProcess(starting: Tool.path, ["--dir", tool.directory, "serve"] + options)
    }

    func send(_ text: String) throws {
        try process.send(text)
    }

    func send(_ signal: Signal) {
        process.send(signal)
    }

    /// Returns the next answers, which it waits for.
    func answers(_ count: Int) throws -> [Frame] {
        while frames.count < count {
            let isThere = try receive()
            try #require(isThere, "it has ended after \(frames.count) answers of \(count)")
        }
        defer { frames.removeFirst(count) }
        return Array(frames.prefix(count))
    }

    /// Returns the remaining answers up to the end of the output, without an incomplete one.
    func rest() throws -> [Frame] {
        while try receive() {}
        return frames
    }

    /// Waits for output and reads some of it, and returns whether there was any before the end.
    @discardableResult
    func receive() throws -> Bool {
        let piece = try process.output.readAvailable()
        received.append(contentsOf: piece)
        let (complete, end) = try Frame.complete(in: received)
        frames += complete
        received = Data(received.dropFirst(end))
        return !piece.isEmpty
    }

    /// Closes the input of the server.
    func closeInput() {
        process.closeInput()
    }

    /// Waits for the end of the server, and returns how it ended.
    func wait() throws -> ChildProcess.End {
        try process.wait()
    }
}
