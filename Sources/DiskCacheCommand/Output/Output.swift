// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The only code that writes to standard output and standard error.
///
/// It writes only printable characters and newlines, except through `writeRaw` and `draw`.
package struct Output {
    /// The buffer size, so that a million keys take a thousand writes; on a terminal the delay is imperceptible.
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
            // A large value is written without another copy.
            try flush()
            return try Self.writeOut(text)
        }
        unsafe text.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        if bytes.count >= Self.pieceSize { try flush() }
    }

    /// Writes the buffered bytes.
    mutating func flush() throws(Errno) {
        if bytes.isEmpty { return }
        // Emptied first: bytes that could not be written once are not retried.
        var piece: [UInt8] = []
        swap(&piece, &bytes)
        try Self.writeOut(piece.span)
        // The memory is reused.
        piece.removeAll(keepingCapacity: true)
        swap(&piece, &bytes)
    }

    private static func writeOut(_ bytes: Span<UInt8>) throws(Errno) {
        try FileDescriptor.borrowing(Terminal.standardOutput) { (file) throws(Errno) in
            try file.writeAll(bytes)
        }
    }

    /// Runs `body` and writes all text that it has added, even if it throws.
    static func toStandardOutput<Value>(_ body: (inout Output) throws -> Value) throws -> Value {
        var output = Output()
        let result = Result { try body(&output) }
        try output.flush()
        return try result.get()
    }

    /// Writes lines.
    package static func print(_ text: String) throws(Errno) {
        try Terminal.write(text.harmless, to: Terminal.standardOutput)
    }

    /// Writes lines; on a terminal a word at the beginning of a line gets its colour.
    static func print(_ text: String, painting words: [(word: String, colour: Colour)]) throws(Errno) {
        guard Colour.isWanted(on: Terminal.standardOutput) else { return try print(text) }
        let lines = text.harmless.split(separator: "\n", omittingEmptySubsequences: false).map {
            line -> String in
            guard let found = words.first(where: { line.hasPrefix($0.word) }) else { return String(line) }
            return found.colour.paint(found.word) + line.dropFirst(found.word.count)
        }
        try draw(lines.joined(separator: "\n"), to: Terminal.standardOutput)
    }

    /// Writes text unchanged: control sequences, and text that the caller has escaped.
    package static func draw(_ text: String, to descriptor: Int32) throws(Errno) {
        try Terminal.write(text, to: descriptor)
    }

    /// Writes one line on standard error.
    package static func complain(_ message: String) throws(Errno) {
        let name = Colour.red.ifWanted("diskcache:", on: Terminal.standardError)
        try Terminal.write("\(name) \(message.singleLine)\n", to: Terminal.standardError)
    }
}
