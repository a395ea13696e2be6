// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// Standard input as lines, and byte sequences between them.
///
/// Output is flushed before each wait for input, because the client may be waiting for it.
struct LineInput {
    /// The maximum length of a line in bytes; after a longer one, the input is unusable.
    static let longestLine = 1 << 20

    private static let separator = UInt8(ascii: "\n")

    private let end: ShutdownSignal
    private var buffer: [UInt8] = []
    /// The offset of the first unconsumed byte in the buffer.
    private var start = 0
    /// Whether the last returned line has no newline, because the input ended there.
    private(set) var isCut = false
    /// Whether a signal asked the process to end, so that no more input is read.
    private(set) var isStopped = false

    /// Creates the input.
    ///
    /// - Parameter end: The signal that ends the input early.
    init(until end: ShutdownSignal) {
        self.end = end
    }

    /// Returns the next line without its newline; nil at the end of the input.
    ///
    /// After the signal, it returns the complete lines that were already read.
    ///
    /// - Throws: ``TooLong``; ``Failure`` if the input can't be read; `Errno` if the output can't be written.
    mutating func line(flushing output: inout Output) throws -> Data? {
        var searched = start
        while true {
            let place = buffer[searched...].firstIndex(of: Self.separator)
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

    /// Passes the next `count` bytes to `body` in pieces; returns false if the input ends early.
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

    /// The error for a line that is longer than ``LineInput/longestLine``.
    struct TooLong: Error {}

    /// Waits for more input and reads it; returns false at the end of the input.
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
            let advice = "check its source"
            throw Failure(.inputOutput, "serve: read standard input: \(error): \(advice)")
        }
        buffer += piece
        return !piece.isEmpty
    }

    /// Waits until input is available; returns true if the process was asked to end.
    private func isToldToEnd() throws(Errno) -> Bool {
        while true {
            let places = [Terminal.standardInput, end.descriptor]
            let ready = try Readiness.wait(for: places, limit: .seconds(3600))
            if ready.contains(end.descriptor) { return true }
            if !ready.isEmpty { return false }
        }
    }
}
