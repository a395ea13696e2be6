// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The only code that writes to standard output and standard error.
///
/// It writes only printable characters and newlines, except in `writeRaw` and `draw`.
package struct Output {
    /// The size of the buffer in bytes: a thousand writes for a million keys, and no noticeable delay on a terminal.
    private static let pieceSize = 64 * 1024

    private var bytes: [UInt8] = []

    /// Appends lines to the buffer.
    mutating func write(_ text: String) throws(Errno) {
        try write(text.utf8Span.span)
    }

    /// Appends lines, given as bytes, to the buffer.
    mutating func write(_ text: Span<UInt8>) throws(Errno) {
        if text.isPlainASCII { return try writeRaw(text) }
        try writeRaw(String(decoding: text).harmless.utf8Span.span)
    }

    /// Appends bytes to the buffer, unchanged.
    mutating func writeRaw(_ text: Span<UInt8>) throws(Errno) {
        if text.count >= Self.pieceSize {
            // A large value is written directly, without another copy.
            try flush()
            return try Self.writeOut(text)
        }
        unsafe text.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        if bytes.count >= Self.pieceSize { try flush() }
    }

    /// Writes the buffered bytes.
    mutating func flush() throws(Errno) {
        if bytes.isEmpty { return }
        // The buffer is emptied first, so that bytes that could not be written are not written again.
        var piece: [UInt8] = []
        swap(&piece, &bytes)
        try Self.writeOut(piece.span)
        // Reuses the memory.
        piece.removeAll(keepingCapacity: true)
        swap(&piece, &bytes)
    }

    private static func writeOut(_ bytes: Span<UInt8>) throws(Errno) {
        try FileDescriptor.borrowing(Terminal.standardOutput) { (file) throws(Errno) in
            try file.writeAll(bytes)
        }
    }

    /// Runs `body`, and writes all text that it added, even if it throws.
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

    /// Writes lines; on a terminal, a word at the beginning of a line gets its color.
    static func print(_ text: String, painting words: [(word: String, colour: Colour)]) throws(Errno) {
        guard Colour.isWanted(on: Terminal.standardOutput) else { return try print(text) }
        let lines = text.harmless.split(separator: "\n", omittingEmptySubsequences: false).map {
            line -> String in
            guard let found = words.first(where: { line.hasPrefix($0.word) }) else { return String(line) }
            return found.colour.paint(found.word) + line.dropFirst(found.word.count)
        }
        try draw(lines.joined(separator: "\n"), to: Terminal.standardOutput)
    }

    /// Writes text unchanged: control sequences, or text that is already escaped.
    package static func draw(_ text: String, to descriptor: Int32) throws(Errno) {
        try Terminal.write(text, to: descriptor)
    }

    /// Writes one line on standard error.
    package static func complain(_ message: String) throws(Errno) {
        let name = Colour.red.ifWanted("diskcache:", on: Terminal.standardError)
        try Terminal.write("\(name) \(message.singleLine)\n", to: Terminal.standardError)
    }
}
