// SPDX-License-Identifier: Apache-2.0

/// What a command wrote and how it ended, as it is stored: a header, frames in the order of arrival, an end.
///
///     "diskcache run 1\n"
///     01 00000003 "ab\n"     three bytes of standard output
///     02 00000002 "x\n"      two bytes of standard error
///     00 00000007            it exited with 7; nothing follows
///
/// Lengths and the status are 32 bits, the most significant first. Anything that does not end so is not a recording.
enum RecordingFormat {
    static let header = Array("diskcache run 1\n".utf8)
    static let frameHeaderSize = 5
    static let end: UInt8 = 0
    /// `info` shows this content type for a recording.
    static let contentType = "application/vnd.diskcache.run; version=1"

    /// What precedes the bytes of a frame.
    static func frame(of stream: OutputStream, count: Int) -> [UInt8] {
        [stream.rawValue] + bytes(UInt32(count))
    }

    /// What a recording ends with.
    static func end(status: Int32) -> [UInt8] {
        [end] + bytes(UInt32(bitPattern: status))
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
}

/// Parses a recording as it is read, however its bytes are split.
struct RecordingParser {
    /// The exit status, once all of a valid recording has been consumed; nil before, and for anything else.
    private(set) var status: Int32?
    /// It is not a recording, or damaged.
    private var isRefused = false
    private var hasBegun = false
    /// What there is of a header: the recording's own or a frame's.
    private var pending: [UInt8] = []
    /// Of which stream the next bytes are, and how many.
    private var frame = (stream: OutputStream.output, left: 0)

    /// Takes the next bytes and passes what the command wrote to `body`, piece by piece.
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
            // Nothing follows the end.
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
