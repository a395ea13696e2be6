// SPDX-License-Identifier: Apache-2.0

import Platform

/// One of the two streams that a command writes.
enum OutputStream: UInt8, Sendable {
    case output = 1
    case errors = 2
}

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
    private enum State {
        case header(matched: Int)
        case frame
        case bytes(OutputStream, left: Int)
        case ended(status: Int32)
        /// It is not a recording, or damaged.
        case refused
    }

    private var state = State.header(matched: 0)
    private var pending: [UInt8] = []

    /// The exit status, once all of a valid recording has been consumed; nil before, and for anything else.
    var status: Int32? {
        if case .ended(let status) = state { return status }
        return nil
    }

    /// Takes the next bytes and passes what the command wrote to `body`, piece by piece.
    mutating func consume<Failure: Error>(
        _ chunk: Span<UInt8>,
        _ body: (OutputStream, Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        var position = 0
        while position < chunk.count {
            switch state {
            case .header(let matched): consumeHeader(chunk[position], matched)
            case .frame: consumeFrame(chunk[position])
            case .bytes(let stream, let left):
                let end = min(chunk.count, position + left)
                try body(stream, chunk.extracting(position..<end))
                let rest = left - (end - position)
                state = rest == 0 ? .frame : .bytes(stream, left: rest)
                position = end
                continue
            case .ended, .refused:
                state = .refused
                return
            }
            position += 1
        }
    }

    private mutating func consumeHeader(_ byte: UInt8, _ matched: Int) {
        guard byte == RecordingFormat.header[matched] else {
            state = .refused
            return
        }
        let next = matched + 1
        state = next == RecordingFormat.header.count ? .frame : .header(matched: next)
    }

    private mutating func consumeFrame(_ byte: UInt8) {
        pending.append(byte)
        guard pending.count == RecordingFormat.frameHeaderSize else { return }
        let number = pending[1...].reduce(0) { $0 << 8 | Int($1) }
        let kind = pending[0]
        pending.removeAll(keepingCapacity: true)
        if kind == RecordingFormat.end, number <= 255 {
            state = .ended(status: Int32(number))
        } else if let stream = OutputStream(rawValue: kind) {
            state = number == 0 ? .frame : .bytes(stream, left: number)
        } else {
            state = .refused
        }
    }
}
