// SPDX-License-Identifier: Apache-2.0

import Platform

/// The one place where text leaves, for standard output and standard error.
///
/// Whatever is in it, nothing but printable characters and newlines gets out, but by what is named raw.
struct Output {
    /// A million keys cost a thousand writes then; on a terminal nobody sees the delay.
    private static let pieceSize = 64 * 1024

    private var bytes: [UInt8] = []

    /// Adds lines.
    mutating func write(_ text: String) throws(Errno) {
        try write(text.utf8Span.span)
    }

    /// Adds lines, as their bytes.
    mutating func write(_ text: Span<UInt8>) throws(Errno) {
        if text.isPlainASCII { return try writeRaw(text) }
        try writeRaw(Self.text(text).harmless.utf8Span.span)
    }

    /// Adds bytes as they are.
    mutating func writeRaw(_ text: Span<UInt8>) throws(Errno) {
        for index in text.indices { bytes.append(text[index]) }
        if bytes.count >= Self.pieceSize { try flush() }
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }

    private mutating func flush() throws(Errno) {
        // Emptied first: what could not be written once is not tried again.
        let piece = bytes
        bytes.removeAll(keepingCapacity: true)
        if piece.isEmpty { return }
        try FileDescriptor.borrowing(Terminal.standardOutput) { (file) throws(Errno) in
            try file.writeAll(piece.span)
        }
    }

    /// Runs `body` and writes all that it has added, also where it fails half way.
    static func toStandardOutput<Value>(_ body: (inout Output) throws -> Value) throws -> Value {
        var output = Output()
        do {
            let value = try body(&output)
            try output.flush()
            return value
        } catch {
            try output.flush()
            throw error
        }
    }

    /// Writes lines.
    static func print(_ text: String) throws(Errno) {
        try Terminal.write(text.harmless, to: Terminal.standardOutput)
    }

    /// Writes control sequences of ours, and text that is harmless.
    static func draw(_ text: String, to descriptor: Int32) throws(Errno) {
        try Terminal.write(text, to: descriptor)
    }

    /// Writes one line on standard error.
    static func complain(_ message: String) throws(Errno) {
        try Terminal.write("diskcache: \(message.singleLine)\n", to: Terminal.standardError)
    }
}
