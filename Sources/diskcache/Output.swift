// SPDX-License-Identifier: Apache-2.0

import Platform

/// Text on its way to standard output, written in large pieces.
struct Output {
    /// A million keys cost a thousand writes then; on a terminal nobody sees the delay.
    private static let pieceSize = 64 * 1024

    private var bytes: [UInt8] = []

    /// Adds text as it is.
    mutating func write(_ text: String) throws(Errno) {
        bytes.append(contentsOf: text.utf8)
        if bytes.count >= Self.pieceSize { try flush() }
    }

    /// Adds text as its bytes.
    mutating func write(_ text: Span<UInt8>) throws(Errno) {
        for index in text.indices { bytes.append(text[index]) }
        if bytes.count >= Self.pieceSize { try flush() }
    }

    private mutating func flush() throws(Errno) {
        // Emptied first: what could not be written once is not tried again.
        let piece = bytes
        bytes.removeAll(keepingCapacity: true)
        if piece.isEmpty { return }
        try FileDescriptor.duplicate(Terminal.standardOutput).writeAll(piece.span)
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

    /// Writes one text.
    static func print(_ text: String) throws(Errno) {
        try Terminal.write(text, to: Terminal.standardOutput)
    }
}
