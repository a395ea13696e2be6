// SPDX-License-Identifier: Apache-2.0

import CPlatform
package import FoundationEssentials
import Glibc

extension FileDescriptor {
    /// Reads until `buffer` is full or the file ends; the number of bytes read.
    ///
    /// C: `read`.
    @unsafe
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        var filled = 0
        while filled < buffer.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let count = try valueOrErrno { unsafe Glibc.read(rawValue, rest.baseAddress, rest.count) }
            if count == 0 { break }
            filled += count
        }
        return filled
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
        guard count < Int.max, let memory = unsafe malloc(count + 1) else { throw .outOfMemory }
        let buffer = unsafe UnsafeMutableRawBufferPointer(start: memory, count: count + 1)
        do throws(Errno) {
            // A read of fewer bytes than asked for means the end on a regular file, read(2): so when
            // the first call gives `count`, the file is complete and no second call need say so.
            let first = try valueOrErrno { unsafe Glibc.read(rawValue, memory, count + 1) }
            var filled = first
            if first < count, first > 0 {
                filled += try unsafe read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[first...]))
            }
            if filled == count {
                return unsafe Data(bytesNoCopy: memory, count: count, deallocator: .free)
            }
        } catch {
            unsafe free(memory)
            throw error
        }
        unsafe free(memory)
        return nil
    }

    /// The file from here to its end, or nil where it is longer than `limit` bytes.
    ///
    /// C: `read`.
    package func readToEnd(limit: Int) throws(Errno) -> [UInt8]? {
        var bytes: [UInt8] = []
        var failure: Errno?
        let step = 16 * 1024
        while bytes.count <= limit {
            var count = 0
            let chunk = unsafe [UInt8](unsafeUninitializedCapacity: step) { buffer, initialized in
                do throws(Errno) {
                    count = try unsafe read(into: UnsafeMutableRawBufferPointer(buffer))
                } catch {
                    failure = error
                }
                initialized = count
            }
            if let failure { throw failure }
            bytes += chunk
            if count < step { break }
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
        do throws(Errno) {
            while filled == capacity {
                capacity = max(Self.chunkSize, capacity * 2)
                // The old memory stays where there is no larger one.
                guard let larger = unsafe realloc(memory, capacity) else { throw .outOfMemory }
                unsafe memory = larger
                let room = unsafe UnsafeMutableRawBufferPointer(
                    start: larger + filled,
                    count: capacity - filled
                )
                filled += try unsafe read(into: room)
            }
        } catch {
            unsafe free(memory)
            throw error
        }
        guard let memory = unsafe memory else { return Data() }
        return unsafe Data(bytesNoCopy: memory, count: filled, deallocator: .free)
    }

    /// Hands the file's bytes from here to its end, or the first `most` of them, to `body`, a chunk at a time.
    ///
    /// C: `read`.
    package func forEachChunk<Failure: Error>(
        atMost most: Int = .max,
        orThrow failure: (Errno) -> Failure,
        _ body: (Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: Self.chunkSize)
        defer { unsafe buffer.deallocate() }
        var rest = most
        while rest > 0 {
            let wanted = min(rest, buffer.count)
            let count: Int
            do throws(Errno) {
                let place = unsafe UnsafeMutableBufferPointer(rebasing: buffer[..<wanted])
                count = try unsafe read(into: UnsafeMutableRawBufferPointer(place))
            } catch {
                throw failure(error)
            }
            if count == 0 { return }
            try unsafe body(Span(_unsafeElements: UnsafeBufferPointer(rebasing: buffer[..<count])))
            if count < wanted { return }
            rest -= count
        }
    }

    /// Bytes moved at a time when a file is streamed: large enough that the calls cost nothing beside
    /// the copying (256 KiB take about 20 µs), small enough for the processor's second-level cache.
    package static let chunkSize = 256 * 1024

    /// Writes all of `bytes`.
    ///
    /// C: `write`; never a signal where files may not grow so long (``FileSizeLimit``).
    ///
    /// - Parameter makeSpace: called with how many bytes are left where the disk or a quota is full; true: it may have
    ///   room now, and writing goes on where it stopped.
    package func writeAll(
        _ bytes: Span<UInt8>,
        makeSpace: (Int) -> Bool = { _ in false }
    ) throws(Errno) {
        try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in
            var written = 0
            while written < buffer.count {
                try FileSizeLimit.admit(self, wasCutShort: written > 0)
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
                do throws(Errno) {
                    written += try valueOrErrno { unsafe Glibc.write(rawValue, rest.baseAddress, rest.count) }
                } catch {
                    guard error.tellsOfFullDisk, makeSpace(rest.count) else { throw error }
                }
            }
        }
    }

    /// Bytes from the offset to the end of a regular file; nil for anything else.
    ///
    /// C: `fstat`, `lseek`.
    package func lengthLeft() throws(Errno) -> Int64? {
        let status = try status()
        guard status.kind == .regular else { return nil }
        return max(0, status.size - Int64(lseek(rawValue, 0, SEEK_CUR)))
    }

    /// Moves the offset back to the start.
    ///
    /// C: `lseek`.
    package func rewind() throws(Errno) {
        _ = try valueOrErrno { lseek(rawValue, 0, SEEK_SET) }
    }

    /// Copies `source` from its offset to its end to this file's offset, inside the kernel where that can
    /// be: by sharing extents (`ioctl(FICLONE)`), else by `copy_file_range`, else by `read` and `write`.
    ///
    /// - Parameters:
    ///   - source: what to copy.
    ///   - most: how many bytes at most.
    ///   - makeSpace: as for ``writeAll(_:makeSpace:)``: nothing has to be read again, so the source may be a pipe.
    /// - Returns: false where it is longer than `most` bytes; then less than all was copied, or all.
    @discardableResult
    package func copyAll(
        from source: borrowing FileDescriptor,
        atMost most: Int64? = nil,
        makeSpace: (Int) -> Bool = { _ in false }
    ) throws(Errno) -> Bool {
        // Known before anything is copied; what grows meanwhile, and a pipe, is found out below.
        if let most, let length = try source.lengthLeft(), length > most { return false }
        try FileSizeLimit.admit(self)
        if try clone(source) { return try holds(atMost: most) }
        if try copyRanges(from: source, makeSpace) { return try holds(atMost: most) }
        var copied: Int64 = 0
        do throws(CopyEnd) {
            try source.forEachChunk(orThrow: { .failed($0) }) { (chunk) throws(CopyEnd) in
                copied += Int64(chunk.count)
                if let most, copied > most { throw .tooLong }
                do throws(Errno) {
                    try writeAll(chunk, makeSpace: makeSpace)
                } catch {
                    throw .failed(error)
                }
            }
        } catch {
            switch error {
            case .tooLong: return false
            case .failed(let errno): throw errno
            }
        }
        return true
    }

    /// Why copying ended before the source did.
    private enum CopyEnd: Error {
        case tooLong
        case failed(Errno)
    }

    private func holds(atMost most: Int64?) throws(Errno) -> Bool {
        guard let most else { return true }
        return try status().size <= most
    }

    /// Cloning is of whole files, so it serves only to fill an empty file from the start of another.
    private func clone(_ source: borrowing FileDescriptor) throws(Errno) -> Bool {
        guard lseek(source.rawValue, 0, SEEK_CUR) == 0, lseek(rawValue, 0, SEEK_CUR) == 0,
            try status().size == 0, cplatform_clone(source.rawValue, rawValue) == 0
        else { return false }
        _ = try valueOrErrno { lseek(rawValue, 0, SEEK_END) }
        return true
    }

    /// False: it can't be done this way, and nothing was written.
    private func copyRanges(
        from source: borrowing FileDescriptor,
        _ makeSpace: (Int) -> Bool
    ) throws(Errno) -> Bool {
        var copied = false
        while true {
            do throws(Errno) {
                do throws(Errno) {
                    try FileSizeLimit.admit(self, wasCutShort: copied)
                } catch {
                    // As long as it may be, and all of it.
                    if copied, try source.isAtEnd() { return true }
                    throw error
                }
                let count = try valueOrErrno {
                    cplatform_copy_file_range(source.rawValue, rawValue, 1 << 30)
                }
                // At once 0 is also what files give that only look like regular ones, as in /proc.
                if count == 0 { return copied }
                copied = true
            } catch {
                // What has to be copied otherwise (a pipe, append mode, another file system) says so at
                // the first call; a failure after that is one of the disk.
                if error.tellsOfFullDisk {
                    // How much is left a file's length would tell, if it is one that stays as it is.
                    guard makeSpace(Self.chunkSize) else { throw error }
                    copied = true
                    continue
                }
                if copied || error == .inputOutput || error == .fileTooLarge { throw error }
                return false
            }
        }
    }

    /// Whether a regular file stands at its end.
    private func isAtEnd() throws(Errno) -> Bool {
        let status = try status()
        return status.kind == .regular && Int64(lseek(rawValue, 0, SEEK_CUR)) >= status.size
    }

    /// Puts the file's bytes on the medium.
    ///
    /// C: `fdatasync`.
    package func synchronize() throws(Errno) {
        try nothingOrErrno { fdatasync(rawValue) }
    }

    /// Puts the file and its attributes on the medium.
    ///
    /// C: `fsync`.
    package func synchronizeAll() throws(Errno) {
        try nothingOrErrno { fsync(rawValue) }
    }

    /// Sets the permission bits whatever the umask is.
    ///
    /// C: `fchmod`.
    package func setMode(_ mode: UInt32) throws(Errno) {
        try nothingOrErrno { fchmod(rawValue, mode) }
    }
}

extension Errno {
    /// Whether the file system has no space left, or the user's quota of it has none.
    package var tellsOfFullDisk: Bool { self == .noSpace || self == .quotaExceeded }
}
