// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// Lines on standard input, and bytes in between, as they come.
///
/// Before it waits for more it writes out what there is to say: whoever sends may wait for that.
struct LineInput {
    /// How long a line may be; what is longer can't be gone past.
    static let longestLine = 1 << 20

    private let command: String
    private let separator: UInt8
    private let end: EndRequest?
    private var buffer: [UInt8] = []
    /// What lies before it in the buffer was given out.
    private var start = 0
    /// Whether the line that was given out last lacks its end, because the input has ended there.
    private(set) var isCut = false
    /// Whether the process was told to end: then no more is read.
    private(set) var isStopped = false

    /// - Parameters:
    ///   - command: for messages.
    ///   - separator: what ends a line.
    ///   - end: what else ends the input.
    init(of command: String, separator: UInt8 = UInt8(ascii: "\n"), until end: EndRequest? = nil) {
        self.command = command
        self.separator = separator
        self.end = end
    }

    /// The next line without its end; nil where there is none.
    ///
    /// Once the process was told to end, there are those that were read before, and no part of one.
    ///
    /// - Throws: ``TooLong``; ``Failure`` where the input can't be read, `Errno` where the output can't be written.
    mutating func line(flushing output: inout Output) throws -> Data? {
        var searched = start
        while true {
            let place = buffer[searched...].firstIndex(of: separator)
            if (place ?? buffer.count) - start > Self.longestLine { throw TooLong() }
            if let place {
                defer { start = place + 1 }
                return Data(buffer[start..<place])
            }
            let count = buffer.count - start
            if try fill(flushing: &output) {
                searched = start + count
                continue
            }
            if isStopped || count == 0 { return nil }
            isCut = true
            defer { start = buffer.count }
            return Data(buffer[start...])
        }
    }

    /// Passes the next `count` bytes to `body`, piece by piece; false where they end before.
    mutating func bytes(
        _ count: Int,
        flushing output: inout Output,
        _ body: (ArraySlice<UInt8>) -> Void
    ) throws -> Bool {
        var left = count
        while true {
            let end = start + min(left, buffer.count - start)
            body(buffer[start..<end])
            left -= end - start
            start = end
            if left == 0 { return true }
            guard try fill(flushing: &output) else { return false }
        }
    }

    /// A line of more than ``LineInput/longestLine`` bytes.
    struct TooLong: Error {}

    /// Waits for more, and reads it; false where there is none.
    private mutating func fill(flushing output: inout Output) throws -> Bool {
        try output.flush()
        buffer.removeFirst(start)
        start = 0
        let piece: [UInt8]
        do throws(Errno) {
            isStopped = try isToldToEnd()
            if isStopped { return false }
            piece = try FileDescriptor.borrowing(Terminal.standardInput) { (file) throws(Errno) in
                try file.readAvailable()
            }
        } catch {
            let advice = "check where it comes from"
            throw Failure(.inputOutput, "\(command): read standard input: \(error): \(advice)")
        }
        buffer += piece
        return !piece.isEmpty
    }

    /// Waits until there is something to read; true: no more is to be read.
    private func isToldToEnd() throws(Errno) -> Bool {
        guard let end else { return false }
        while true {
            let places = [Terminal.standardInput, end.descriptor]
            let ready = try Readiness.wait(for: places, limit: .seconds(3600))
            if ready.contains(end.descriptor) { return true }
            if !ready.isEmpty { return false }
        }
    }
}
