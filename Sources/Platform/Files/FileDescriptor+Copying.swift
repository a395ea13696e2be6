// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

extension FileDescriptor {
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
        let most = most ?? .max
        // Known before anything is copied; what grows meanwhile, and a pipe, is found out below.
        if most < .max, let length = try source.lengthLeft(), length > most { return false }
        try FileSizeLimit.admit(self)
        var isCopied = try clone(source)
        if !isCopied { isCopied = try copyRanges(from: source, makeSpace) }
        if isCopied { return most == .max ? true : try status().size <= most }
        // A byte more than there may be tells that there are more.
        let limit = Int(most == .max ? most : most + 1)
        var copied: Int64 = 0
        try source.forEachChunk(atMost: limit, orThrow: { $0 }) { (chunk) throws(Errno) in
            copied += Int64(chunk.count)
            try writeAll(chunk, makeSpace: makeSpace)
        }
        return copied <= most
    }

    /// Cloning is of whole files, so it serves only to fill an empty file from the start of another.
    private func clone(_ source: borrowing FileDescriptor) throws(Errno) -> Bool {
        guard source.offset == 0, offset == 0, try status().size == 0,
            !SystemCall.clone.isRefused, cplatform_clone(source.rawValue, rawValue) == 0
        else { return false }
        try systemCall(.seek) { lseek(rawValue, 0, SEEK_END) }
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
                    if copied, try source.lengthLeft() == 0 { return true }
                    throw error
                }
                let count = try systemCall(.copyFileRange, upTo: 1 << 30) { count in
                    cplatform_copy_file_range(source.rawValue, rawValue, count)
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
}
