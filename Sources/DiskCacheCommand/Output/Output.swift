// SPDX-License-Identifier: Apache-2.0

import Platform

/// The one place that writes to standard output and standard error.
///
/// Only printable characters and newlines get out, except through `writeRaw` and `draw`.
struct Output {
    /// So that a million keys take a thousand writes; on a terminal nobody notices the delay.
    private static let pieceSize = 64 * 1024

    private var bytes: [UInt8] = []

    /// Adds lines.
    mutating func write(_ text: String) throws(Errno) {
        try write(text.utf8Span.span)
    }

    /// Adds lines, given as bytes.
    mutating func write(_ text: Span<UInt8>) throws(Errno) {
        if text.isPlainASCII { return try writeRaw(text) }
        try writeRaw(String(decoding: text).harmless.utf8Span.span)
    }

    /// Adds bytes unchanged.
    mutating func writeRaw(_ text: Span<UInt8>) throws(Errno) {
        if text.count >= Self.pieceSize {
            // A large value is not copied once more.
            try flush()
            return try Self.writeOut(text)
        }
        unsafe text.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        if bytes.count >= Self.pieceSize { try flush() }
    }

    /// Writes what was added so far.
    mutating func flush() throws(Errno) {
        if bytes.isEmpty { return }
        // Emptied first: what could not be written once is not tried again.
        var piece: [UInt8] = []
        swap(&piece, &bytes)
        try Self.writeOut(piece.span)
        // Its memory serves again.
        piece.removeAll(keepingCapacity: true)
        swap(&piece, &bytes)
    }

    private static func writeOut(_ bytes: Span<UInt8>) throws(Errno) {
        try FileDescriptor.borrowing(Terminal.standardOutput) { (file) throws(Errno) in
            try file.writeAll(bytes)
        }
    }

    /// Runs `body` and writes everything that it has added, even if it fails halfway.
    static func toStandardOutput<Value>(_ body: (inout Output) throws -> Value) throws -> Value {
        var output = Output()
        let result = Result { try body(&output) }
        try output.flush()
        return try result.get()
    }

    /// Writes lines.
    static func print(_ text: String) throws(Errno) {
        try Terminal.write(text.harmless, to: Terminal.standardOutput)
    }

    /// Writes lines; on a terminal those that begin with one of the words have it in its colour.
    static func print(_ text: String, painting words: [(word: String, colour: Colour)]) throws(Errno) {
        guard Colour.isWanted(on: Terminal.standardOutput) else { return try print(text) }
        let lines = text.harmless.split(separator: "\n", omittingEmptySubsequences: false).map {
            line -> String in
            guard let found = words.first(where: { line.hasPrefix($0.word) }) else { return String(line) }
            return found.colour.paint(found.word) + line.dropFirst(found.word.count)
        }
        try draw(lines.joined(separator: "\n"), to: Terminal.standardOutput)
    }

    /// Writes text unchanged: our own control sequences, and text that the caller has made harmless.
    static func draw(_ text: String, to descriptor: Int32) throws(Errno) {
        try Terminal.write(text, to: descriptor)
    }

    /// Writes one line on standard error.
    static func complain(_ message: String) throws(Errno) {
        let name = Colour.red.ifWanted("diskcache:", on: Terminal.standardError)
        try Terminal.write("\(name) \(message.singleLine)\n", to: Terminal.standardError)
    }
}
