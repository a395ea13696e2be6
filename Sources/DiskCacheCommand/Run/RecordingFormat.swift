// SPDX-License-Identifier: Apache-2.0

/// The format of a recording, which stores a command's output and exit status: a header, frames in the order of arrival,
/// an end.
///
///     "diskcache run 1\n"
///     01 00000003 "ab\n"     three bytes of standard output
///     02 00000002 "x\n"      two bytes of standard error
///     00 00000007            it exited with 7; nothing follows
///
/// Lengths and the status are 32-bit big-endian numbers. A value without such an end is not a recording.
enum RecordingFormat {
    static let header = Array("diskcache run 1\n".utf8)
    static let frameHeaderSize = 5
    static let end: UInt8 = 0
    /// The content type of recordings, which `info` shows.
    static let contentType = "application/vnd.diskcache.run; version=1"

    /// Returns the header of a frame, which precedes its content.
    static func frame(of stream: OutputStream, count: Int) -> [UInt8] {
        [stream.rawValue] + bytes(UInt32(count))
    }

    /// Returns the end of a recording.
    static func end(status: Int32) -> [UInt8] {
        [end] + bytes(UInt32(bitPattern: status))
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
}

/// A parser for a recording that is read in pieces of any size.
struct RecordingParser {
    /// The exit status after a complete, valid recording; nil before its end, and for any other value.
    private(set) var status: Int32?
    /// Whether the value is damaged or not a recording.
    private var isRefused = false
    private var hasBegun = false
    /// The incomplete header of the recording or of a frame.
    private var pending: [UInt8] = []
    /// The stream of the current frame, and the number of bytes that it still lacks.
    private var frame = (stream: OutputStream.output, left: 0)

    /// Parses the next bytes, and passes the command's output to `body` in pieces.
    mutating func consume<Failure: Error>(
        _ chunk: Span<UInt8>,
        _ body: (OutputStream, Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        var position = 0
        while position < chunk.count, !isRefused {
            if frame.left > 0 {
                let end = min(chunk.count, position + frame.left)
                try body(frame.stream, chunk.extracting(position..<end))
                frame.left -= end - position
                position = end
            } else {
                consumeHeader(chunk[position])
                position += 1
            }
        }
    }

    private mutating func consumeHeader(_ byte: UInt8) {
        pending.append(byte)
        if status != nil {
            // Bytes after the end are an error.
            (status, isRefused) = (nil, true)
        } else if !hasBegun, pending.count == RecordingFormat.header.count {
            (hasBegun, isRefused) = (true, pending != RecordingFormat.header)
            pending.removeAll(keepingCapacity: true)
        } else if hasBegun, pending.count == RecordingFormat.frameHeaderSize {
            let number = pending[1...].reduce(0) { $0 << 8 | Int($1) }
            if pending[0] == RecordingFormat.end, number <= 255 {
                status = Int32(number)
            } else if let stream = OutputStream(rawValue: pending[0]) {
                frame = (stream, number)
            } else {
                isRefused = true
            }
            pending.removeAll(keepingCapacity: true)
        }
    }
}
