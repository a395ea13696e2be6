// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// A recording of a running command's output.
///
/// Short output stays in memory. Longer output goes to an unnamed file, which disappears if this process is killed.
///
/// If recording fails, the command continues; the failure is remembered, and the result is not stored.
struct Recorder: ~Copyable {
    /// The maximum number of bytes in memory, more than most commands write.
    private static let bufferSize = 256 * 1024
    /// How long to make space for the buffer on a full disk; the command's output is blocked during that time.
    private static let roomPatience: Duration = .seconds(1)

    private var buffer = RecordingFormat.header
    private var file: FileDescriptor?
    /// The number of bytes in the file.
    private var written = 0
    private var failure: (any Error)?
    private let cache: SharedCache
    /// The length in bytes that the limits allow; nil if they allow any.
    private let most: Int64?

    /// Creates a recorder whose file is in the directory of `cache`, so that the cache can adopt it without copying.
    init(in cache: SharedCache) {
        self.cache = cache
        most = cache.longestValue
    }

    /// Records output of the command.
    mutating func add(_ bytes: [UInt8], of stream: OutputStream) {
        if failure != nil { return }
        buffer += RecordingFormat.frame(of: stream, count: bytes.count)
        buffer += bytes
        if buffer.count >= Self.bufferSize { flush() }
    }

    private mutating func flush() {
        do {
            if let most, Int64(written + buffer.count) > most {
                let detail = "it is longer than \(most) bytes, the most that the limits allow"
                throw CacheError(.valueTooLarge, to: "store the output in", path: cache.path, detail: detail)
            }
            if file == nil { file = try FileDescriptor.unnamed(in: cache.path) }
            let end = ContinuousClock.now + Self.roomPatience
            try file?.writeAll(buffer.span) { [cache] in ContinuousClock.now < end && cache.makeSpace($0) }
            written += buffer.count
        } catch {
            failure = error
            // Nothing reads it anymore, so it need not take space while the command runs.
            file = nil
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Ends the recording with this exit status, and stores it.
    consuming func store(_ status: Int32, forKey key: String, options: PutOptions) throws {
        // Copied here, because the call consumes `self`.
        let cache = cache
        buffer += RecordingFormat.end(status: status)
        if file != nil { flush() }
        if let failure { throw failure }
        guard let file else {
            try cache.put(Data(buffer), forKey: key, options: options)
            return
        }
        try file.rewind()
        try cache.put(contentsOfDescriptor: file.rawValue, forKey: key, options: options)
    }
}
