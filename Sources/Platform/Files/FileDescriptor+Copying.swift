// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

extension FileDescriptor {
    /// Copies `source`, from its offset to its end, to this file's offset.
    ///
    /// The kernel copies the data if possible: by sharing extents (`ioctl(FICLONE)`), else by `copy_file_range`.
    /// Otherwise the function uses `read` and `write`.
    ///
    /// - Parameters:
    ///   - source: The file to copy.
    ///   - most: The maximum number of bytes.
    ///   - makeSpace: As for ``writeAll(_:makeSpace:)``. A retry reads no data again, so the source may be a pipe.
    /// - Returns: false if the source is longer than `most` bytes; none, some or all of it may have been copied.
    @discardableResult
    package func copyAll(
        from source: borrowing FileDescriptor,
        atMost most: Int64? = nil,
        makeSpace: (Int) -> Bool = { _ in false }
    ) throws(Errno) -> Bool {
        let most = most ?? .max
        // Only a regular file's length is known before copying. The code below detects a file that grows, and a pipe that
        // has more bytes.
        if most < .max, let length = try source.lengthLeft(), length > most { return false }
        try FileSizeLimit.admit(self)
        var isCopied = try clone(source)
        if !isCopied { isCopied = try copyRanges(from: source, makeSpace) }
        if isCopied { return most == .max ? true : try status().size <= most }
        // Reading one byte beyond the limit detects a longer source.
        let limit = Int(most == .max ? most : most + 1)
        var copied: Int64 = 0
        try source.forEachChunk(atMost: limit, orThrow: { $0 }) { (chunk) throws(Errno) in
            copied += Int64(chunk.count)
            try writeAll(chunk, makeSpace: makeSpace)
        }
        return copied <= most
    }

    /// Clones the whole source; returns false unless the source is at its start, this file is empty, and cloning
    /// succeeds.
    private func clone(_ source: borrowing FileDescriptor) throws(Errno) -> Bool {
        guard source.offset == 0, offset == 0, try status().size == 0,
            !SystemCall.clone.isRefused, cplatform_clone(source.rawValue, rawValue) == 0
        else { return false }
        try systemCall(.seek) { lseek(rawValue, 0, SEEK_END) }
        return true
    }

    /// Copies by `copy_file_range`; returns false if that is not possible and no data were written.
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
                    // The file has reached the limit, but the copy is complete.
                    if copied, try source.lengthLeft() == 0 { return true }
                    throw error
                }
                let count = try systemCall(.copyFileRange, upTo: 1 << 30) { count in
                    cplatform_copy_file_range(source.rawValue, rawValue, count)
                }
                // The first call also returns 0 for a file that only looks like a regular one, as in /proc.
                if count == 0 { return copied }
                copied = true
            } catch {
                // If the data must be copied in another way (a pipe, append mode, another file system), the first call
                // fails. A failure of a later call is a disk error.
                if error.isDiskFull {
                    // The number of remaining bytes is not exactly known: a file may change, and a pipe has no length.
                    guard makeSpace(Self.chunkSize) else { throw error }
                    copied = true
                    continue
                }
                if copied || error == .inputOutput || error == .fileTooLarge { throw error }
                return false
            }
        }
    }
}
