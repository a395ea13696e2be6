// SPDX-License-Identifier: Apache-2.0

import CPlatform
package import FoundationEssentials
import Glibc

extension FileDescriptor {
    /// The number of bytes moved at a time when a file is streamed.
    ///
    /// It is large enough that the cost of the calls is negligible compared with the copying (256 KiB take about 20 µs), and
    /// small enough for the processor's second-level cache.
    package static let chunkSize = 256 * 1024

    /// Reads until `buffer` is full or the file ends, and returns the number of bytes read.
    ///
    /// C: `read`.
    @unsafe
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        var filled = 0
        while filled < buffer.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let count = try unsafe readSome(into: rest)
            if count == 0 { break }
            filled += count
        }
        return filled
    }

    /// Calls `read` once; if the descriptor is non-blocking and has no data, waits with `poll` and calls `read` again.
    ///
    /// Standard input is non-blocking if the process that started this one made it so: processes that share a pipe or a
    /// terminal share this flag.
    @unsafe
    @inline(__always)
    func readSome(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        while true {
            do throws(Errno) {
                return try unsafe readOnce(into: buffer)
            } catch {
                guard error == .wouldBlock else { throw error }
                try Readiness.wait(forReading: rawValue)
            }
        }
    }

    /// Calls `read` once; throws `wouldBlock` if the descriptor is non-blocking and has no data.
    @unsafe
    @inline(__always)
    func readOnce(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        try systemCall(.read, upTo: buffer.count) { count in
            unsafe cplatform_read(rawValue, buffer.baseAddress, count)
        }
    }

    /// Returns the whole file as `Data`, or nil if it does not have exactly `count` bytes.
    ///
    /// C: `read`.
    ///
    /// A file of the right size takes one `read`, which requests one byte more than expected and so detects a longer
    /// file. The bytes are not copied again. From 1 MiB on, where an extra call is negligible, the size is checked before
    /// memory is allocated: a damaged record may state any length.
    package func readExactly(_ count: Int) throws(Errno) -> Data? {
        if count >= 1 << 20, try status().size != Int64(count) { return nil }
        return try unsafe Data.filled(count) { (buffer) throws(Errno) in
            // A regular file returns fewer bytes than requested only at its end, read(2). So if the first call returns
            // `count`, the file is complete, and no second call is needed.
            let first = try unsafe readSome(into: buffer)
            if first == 0 || first >= count { return first == count }
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[first...])
            return first + (try unsafe read(into: rest)) == count
        }
    }

    /// Returns the rest of the file, or nil if it is longer than `limit` bytes.
    ///
    /// C: `read`.
    package func readToEnd(limit: Int) throws(Errno) -> [UInt8]? {
        var bytes: [UInt8] = []
        let step = 16 * 1024
        while bytes.count <= limit {
            let chunk = try unsafe [UInt8](upTo: step) { (buffer) throws(Errno) in
                try unsafe read(into: buffer)
            }
            bytes += chunk
            if chunk.count < step { break }
        }
        return bytes.count <= limit ? bytes : nil
    }

    /// Returns the rest of the file or pipe, of any length.
    ///
    /// C: `read`.
    ///
    /// - Throws: ``Errno/outOfMemory`` if it does not fit into memory.
    package func readToEnd() throws(Errno) -> Data {
        var memory: UnsafeMutableRawPointer?
        var (capacity, filled) = (0, 0)
        defer { unsafe free(memory) }
        while filled == capacity {
            capacity = max(Self.chunkSize, capacity * 2)
            // If realloc fails, the old memory stays valid, and the deferred `free` releases it.
            guard let larger = unsafe realloc(memory, capacity) else { throw .outOfMemory }
            unsafe memory = larger
            let room = unsafe UnsafeMutableRawBufferPointer(start: larger, count: capacity)
            filled += try unsafe read(into: UnsafeMutableRawBufferPointer(rebasing: room[filled...]))
        }
        // Taking the pointer transfers the memory to the `Data`, which frees it.
        guard let taken = unsafe memory.take() else { return Data() }
        return unsafe Data(bytesNoCopy: taken, count: filled, deallocator: .free)
    }

    /// Passes the rest of the file, or its first `most` bytes, to `body`, a chunk at a time.
    ///
    /// C: `read`.
    package func forEachChunk<Failure: Error>(
        atMost most: Int = .max,
        orThrow failure: (Errno) -> Failure,
        _ body: (Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 16)
        defer { unsafe buffer.deallocate() }
        var rest = most
        while rest > 0 {
            let place = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(rest, buffer.count)])
            let read = Result { () throws(Errno) in try unsafe self.read(into: place) }
            let count = try read.mapError(failure).get()
            if count == 0 { return }
            try unsafe body(Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: place[..<count])))
            if count < place.count { return }
            rest -= count
        }
    }

    /// Reads at most `count` bytes at `offset`, without moving the file's offset.
    ///
    /// C: `pread`.
    package func read(_ count: Int, at offset: Int = 0) throws(Errno) -> [UInt8] {
        try unsafe [UInt8](upTo: count) { (buffer) throws(Errno) in
            try systemCall(.read, upTo: count) { unsafe pread(rawValue, buffer.baseAddress, $0, offset) }
        }
    }

    /// Returns `count` bytes at `offset`, without moving the file's offset; nil if the file ends before them.
    ///
    /// C: `pread`.
    ///
    /// - Throws: ``Errno/outOfMemory`` if they do not fit into memory.
    package func readData(_ count: Int, at offset: Int) throws(Errno) -> Data? {
        try unsafe Data.filled(count) { (buffer) throws(Errno) in
            var filled = 0
            while filled < count {
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<count])
                let place = offset + filled
                let read = try systemCall(.read, upTo: rest.count) {
                    unsafe pread(rawValue, rest.baseAddress, $0, place)
                }
                if read == 0 { return false }
                filled += read
            }
            return true
        }
    }

    /// Returns the data available now, at most 64 KiB; empty at the end of the file.
    ///
    /// It waits while no data are available.
    ///
    /// C: `read`.
    package func readAvailable() throws(Errno) -> [UInt8] {
        try unsafe [UInt8](upTo: 64 * 1024) { (buffer) throws(Errno) in try unsafe readSome(into: buffer) }
    }

    /// Passes the file's data to `body`, at most ``chunkSize`` bytes at a time, and skips holes between chunks.
    ///
    /// Each chunk begins with data; a hole inside a chunk reads as zeros.
    ///
    /// C: `lseek(SEEK_DATA)`, `pread`.
    package func forEachChunkOfData(_ body: (Span<UInt8>) -> Void) throws(Errno) {
        var offset = 0
        while true {
            do throws(Errno) {
                offset = try systemCall(.seek) { lseek(rawValue, offset, cplatform_SEEK_DATA) }
            } catch {
                // Only a hole follows, or the end.
                if error == .noDeviceOrAddress { return }
                throw error
            }
            let chunk = try read(Self.chunkSize, at: offset)
            if chunk.isEmpty { return }
            body(chunk.span)
            offset += chunk.count
        }
    }
}

extension [UInt8] {
    /// Creates an array of the bytes, at most `capacity`, that `fill` writes to the buffer; `fill` returns their number.
    @unsafe
    @inline(__always)
    init(upTo capacity: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int) throws(Errno) {
        try unsafe self.init(unsafeUninitializedCapacity: capacity) { (buffer, count) throws(Errno) in
            count = try unsafe fill(UnsafeMutableRawBufferPointer(buffer))
        }
    }
}

extension Data {
    /// Returns `count` bytes that `fill` writes to a buffer of `count` + 1 bytes; nil if `fill` returns false.
    ///
    /// - Throws: ``Errno/outOfMemory`` if they do not fit into memory.
    @unsafe
    @inline(__always)
    static func filled(
        _ count: Int,
        _ fill: (UnsafeMutableRawBufferPointer) throws(Errno) -> Bool
    ) throws(Errno) -> Data? {
        guard count >= 0, count < Int.max, let memory = unsafe malloc(count + 1) else { throw .outOfMemory }
        do throws(Errno) {
            if try unsafe fill(UnsafeMutableRawBufferPointer(start: memory, count: count + 1)) {
                return unsafe Data(bytesNoCopy: memory, count: count, deallocator: .free)
            }
        } catch {
            unsafe free(memory)
            throw error
        }
        unsafe free(memory)
        return nil
    }

    /// Creates a copy of `bytes`.
    ///
    /// - Throws: ``Errno/outOfMemory`` if there is no memory for a megabyte or more. If there is none for less, the process
    ///   can hardly work anyway.
    package init(copying bytes: Span<UInt8>) throws(Errno) {
        let count = bytes.count
        guard count >= 1 << 20 else {
            self = unsafe bytes.withUnsafeBufferPointer { unsafe Data($0) }
            return
        }
        self =
            try unsafe Data.filled(count) { buffer in
                unsafe bytes.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
                return true
            } ?? Data()
    }
}
