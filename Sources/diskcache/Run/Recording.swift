// SPDX-License-Identifier: Apache-2.0

import Platform

/// A stored recording, open for reading.
struct Recording: ~Copyable {
    /// Why it could not be replayed.
    enum Failure: Error {
        case reading(Errno)
        case writing(Errno)
    }

    private let file: FileDescriptor

    /// Takes an open value of the cache, whose bytes have been checked.
    init(_ descriptor: Int32) throws(Failure) {
        do throws(Errno) {
            file = try FileDescriptor.duplicate(descriptor)
        } catch {
            throw .reading(error)
        }
    }

    /// The exit status that it ends with; nil if it is incomplete, or not a recording.
    ///
    /// - Complexity: O(*n*); nothing is kept in memory.
    func status() throws(Failure) -> Int32? {
        try parse { (_, _) throws(Failure) in }
    }

    /// Writes what the command wrote: the same bytes to the same streams in the same order.
    func replay(to sink: OutputSink) throws(Failure) {
        if sink.isSilent { return }
        _ = try parse { (stream, bytes) throws(Failure) in
            do throws(Errno) {
                try sink.write(bytes, to: stream)
            } catch {
                throw .writing(error)
            }
        }
    }

    private func parse(
        _ body: (OutputStream, Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) -> Int32? {
        do throws(Errno) {
            try file.rewind()
        } catch {
            throw .reading(error)
        }
        var parser = RecordingParser()
        try file.forEachChunk(orThrow: { .reading($0) }) { (chunk) throws(Failure) in
            try parser.consume(chunk, body)
        }
        return parser.status
    }
}
