// SPDX-License-Identifier: Apache-2.0

import CPlatform
package import FoundationEssentials
import Glibc

extension FileDescriptor {
    /// Bytes moved at a time when a file is streamed: large enough that the calls cost nothing beside
    /// the copying (256 KiB take about 20 µs), small enough for the processor's second-level cache.
    package static let chunkSize = 256 * 1024

    /// Reads until `buffer` is full or the file ends; the number of bytes read.
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

    /// One call of `read`; where the descriptor is non-blocking and has nothing, one more after each `poll`.
    ///
    /// Standard input is non-blocking where the process that started this one has made it so: whoever shares a pipe or a
    /// terminal shares this flag.
    @unsafe
    @inline(__always)
    func readSome(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        while true {
            do throws(Errno) {
                return try systemCall(.read, upTo: buffer.count) { count in
                    unsafe cplatform_read(rawValue, buffer.baseAddress, count)
                }
            } catch {
                guard error == .wouldBlock else { throw error }
                try Readiness.wait(forReading: rawValue)
            }
        }
    }

    /// The whole file as `Data`, or nil where it does not hold exactly `count` bytes.
    ///
    /// C: `read`.
    ///
    /// One `read` for a file of the right size: it asks for a byte more than expected, so that a file
    /// that is too long is noticed without a further call. The bytes are not copied again. From 1 MiB on,
    /// where a call more does not count, the size is looked at before memory is asked for: a damaged
    /// record may promise any length.
    package func readExactly(_ count: Int) throws(Errno) -> Data? {
        if count >= 1 << 20, try status().size != Int64(count) { return nil }
        return try unsafe Data.filled(count) { (buffer) throws(Errno) in
            // A read of fewer bytes than asked for means the end on a regular file, read(2): so when
            // the first call gives `count`, the file is complete and no second call need say so.
            let first = try unsafe readSome(into: buffer)
            if first == 0 || first >= count { return first == count }
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[first...])
            return first + (try unsafe read(into: rest)) == count
        }
    }

    /// The file from here to its end, or nil where it is longer than `limit` bytes.
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

    /// The file from here to its end, however long; also of a pipe.
    ///
    /// C: `read`.
    ///
    /// - Throws: ``Errno/outOfMemory`` where there is none for it.
    package func readToEnd() throws(Errno) -> Data {
        var memory: UnsafeMutableRawPointer?
        var (capacity, filled) = (0, 0)
        defer { unsafe free(memory) }
        while filled == capacity {
            capacity = max(Self.chunkSize, capacity * 2)
            // The old memory stays where there is no larger one.
            guard let larger = unsafe realloc(memory, capacity) else { throw .outOfMemory }
            unsafe memory = larger
            let room = unsafe UnsafeMutableRawBufferPointer(start: larger, count: capacity)
            filled += try unsafe read(into: UnsafeMutableRawBufferPointer(rebasing: room[filled...]))
        }
        // Taken: the memory is its own to free from now on.
        guard let taken = unsafe memory.take() else { return Data() }
        return unsafe Data(bytesNoCopy: taken, count: filled, deallocator: .free)
    }

    /// Hands the file's bytes from here to its end, or the first `most` of them, to `body`, a chunk at a time.
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

    /// Reads at most `count` bytes from `offset` on, without moving the file's own.
    ///
    /// C: `pread`.
    package func read(_ count: Int, at offset: Int = 0) throws(Errno) -> [UInt8] {
        try unsafe [UInt8](upTo: count) { (buffer) throws(Errno) in
            try systemCall(.read, upTo: count) { unsafe pread(rawValue, buffer.baseAddress, $0, offset) }
        }
    }

    /// `count` bytes from `offset` on, without moving the file's own; nil where the file ends before them.
    ///
    /// C: `pread`.
    ///
    /// - Throws: ``Errno/outOfMemory`` where there is no memory for them.
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

    /// What there is to read now, at most 64 KiB; empty at the end.
    ///
    /// Waits where there is nothing.
    ///
    /// C: `read`.
    package func readAvailable() throws(Errno) -> [UInt8] {
        try unsafe [UInt8](upTo: 64 * 1024) { (buffer) throws(Errno) in try unsafe readSome(into: buffer) }
    }

    /// Hands the file's bytes to `body`, a chunk of ``chunkSize`` at a time, without what lies in holes as large as that.
    ///
    /// C: `lseek(SEEK_DATA)`, `pread`.
    package func forEachChunkOfData(_ body: (Span<UInt8>) -> Void) throws(Errno) {
        var offset = 0
        while true {
            do throws(Errno) {
                offset = try systemCall(.seek) { lseek(rawValue, offset, cplatform_SEEK_DATA) }
            } catch {
                // Nothing but a hole, or the end.
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
    /// The bytes, `capacity` at most, that `fill` puts into memory; it says how many they are.
    @unsafe
    @inline(__always)
    init(upTo capacity: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int) throws(Errno) {
        try unsafe self.init(unsafeUninitializedCapacity: capacity) { (buffer, count) throws(Errno) in
            count = try unsafe fill(UnsafeMutableRawBufferPointer(buffer))
        }
    }
}

extension Data {
    /// `count` bytes that `fill` puts into memory, which has room for one more; nil where it gives false.
    ///
    /// - Throws: ``Errno/outOfMemory`` where there is no memory for them.
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

    /// A copy of `bytes`.
    ///
    /// - Throws: ``Errno/outOfMemory`` where there is no memory for a megabyte or more; where there is none for less,
    ///   hardly anything works.
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
