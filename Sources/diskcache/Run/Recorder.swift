// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// A recording while it is made: what is short stays in memory, the rest goes to a file without a name, of
/// which nothing is left where this process is killed.
///
/// That it can't go on is no reason for the command to end: the failure is kept, and nothing is stored.
struct Recorder: ~Copyable {
    /// What may be in memory: more than most commands write.
    private static let bufferSize = 256 * 1024
    /// How long room is made on a full disk, for what the buffer holds: meanwhile the command's output stands still.
    private static let roomPatience: Duration = .seconds(1)

    private var buffer = RecordingFormat.header
    private var file: FileDescriptor?
    private(set) var failure: Errno?
    private let cache: SharedCache

    /// One that puts its file into the directory of `cache`, from where it can take it without copying.
    init(in cache: SharedCache) {
        self.cache = cache
    }

    /// Adds what the command has written.
    mutating func add(_ bytes: [UInt8], of stream: OutputStream) {
        if failure != nil { return }
        buffer += RecordingFormat.frame(of: stream, count: bytes.count)
        buffer += bytes
        if buffer.count >= Self.bufferSize { flush() }
    }

    private mutating func flush() {
        do throws(Errno) {
            if file == nil { file = try FileDescriptor(unnamedIn: cache.path) }
            let end = ContinuousClock.now + Self.roomPatience
            try file?.writeAll(buffer.span) { [cache] in ContinuousClock.now < end && cache.makeSpace($0) }
        } catch {
            failure = error
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Stores what was recorded, which ends with this status.
    consuming func store(
        _ status: Int32,
        in cache: SharedCache,
        forKey key: String,
        options: PutOptions
    ) throws {
        buffer += RecordingFormat.end(status: status)
        if file != nil { flush() }
        if let failure { throw failure }
        guard let file else {
            try cache.put(Data(buffer), forKey: key, options: options)
            return
        }
        try file.rewind()
        try cache.put(
            contentsOfDescriptor: file.rawValue,
            forKey: key,
            options: options
        )
    }
}
