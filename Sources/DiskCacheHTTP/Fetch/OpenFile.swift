// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// An open file, which may have no name; it stays open while this object is referenced.
final class OpenFile: Sendable {
    let file: FileDescriptor

    init(_ file: consuming FileDescriptor) {
        self.file = file
    }

    /// Returns the bytes of a range; the file must not change any more.
    func bytes(_ range: Range<Int>) throws(Errno) -> Data {
        guard let data = try file.readData(range.count, at: range.lowerBound) else { throw .inputOutput }
        return data
    }

    /// Writes a range of the file to `output`.
    ///
    /// Needs memory for one chunk. If the range covers the whole file, the kernel copies it.
    func copy(_ range: Range<Int>, to output: borrowing FileDescriptor) throws(Errno) {
        let size = try file.status().size
        if range.lowerBound == 0, Int64(range.upperBound) == size {
            try file.rewind()
            _ = try output.copyAll(from: file)
            return
        }
        var place = range.lowerBound
        while place < range.upperBound {
            let chunk = try file.read(min(FileDescriptor.chunkSize, range.upperBound - place), at: place)
            if chunk.isEmpty { throw .inputOutput }
            try output.writeAll(chunk.span)
            place += chunk.count
        }
    }

    /// Returns the SHA-256 of the whole file.
    func digest() throws(Errno) -> [32 of UInt8] {
        var hash = SHA256()
        try file.rewind()
        try file.forEachChunk(orThrow: { $0 }) { (chunk) throws(Errno) in hash.update(chunk) }
        return hash.finalize()
    }
}

/// The body of a response, before it is delivered.
enum FetchedBody: Sendable {
    case nothing
    case data(Data)
    case file(OpenFile, Range<Int>)

    var length: Int {
        switch self {
        case .nothing: 0
        case .data(let data): data.count
        case .file(_, let range): range.count
        }
    }

    /// Returns the body in memory; blocks.
    func data() throws(Errno) -> Data {
        switch self {
        case .nothing: Data()
        case .data(let data): data
        case .file(let file, let range): try file.bytes(range)
        }
    }

    /// Writes the body to a file; blocks.
    func write(to output: borrowing FileDescriptor) throws(Errno) {
        switch self {
        case .nothing: return
        case .data(let data): try output.writeAll(data.span)
        case .file(let file, let range): try file.copy(range, to: output)
        }
    }
}
