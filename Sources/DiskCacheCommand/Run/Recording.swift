// SPDX-License-Identifier: Apache-2.0

import Platform

/// A stored recording.
enum Recording {
    /// The error that a recording can't be read.
    struct Unreadable: Error, CustomStringConvertible {
        let reason: Errno

        var description: String { "read what is stored: \(reason)" }
    }

    /// Passes the recorded output to `body`, with the same bytes on the same streams in the same order.
    ///
    /// - Complexity: O(*n*) time; the recording is not kept in memory.
    ///
    /// - Parameter descriptor: An open value of the cache, whose bytes have been verified.
    /// - Returns: The exit status; nil if the recording is incomplete, or if the value is not a recording.
    static func parse(
        _ descriptor: Int32,
        _ body: (OutputStream, Span<UInt8>) throws -> Void = { _, _ in }
    ) throws -> Int32? {
        let file: FileDescriptor
        do throws(Errno) {
            try FileDescriptor.borrowing(descriptor) { (file) throws(Errno) in try file.rewind() }
            file = try FileDescriptor.duplicate(descriptor)
        } catch {
            throw Unreadable(reason: error)
        }
        var parser = RecordingParser()
        try file.forEachChunk(orThrow: { Unreadable(reason: $0) as any Error }) { chunk in
            try parser.consume(chunk, body)
        }
        return parser.status
    }
}
