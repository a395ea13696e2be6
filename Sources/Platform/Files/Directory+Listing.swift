// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// What a directory entry itself records about a file, without a stat of the file.
package struct ListedFile: Sendable {
    /// The inode number; if a file system is mounted on the file, stat(2) may return a different number, that of its
    /// root.
    package let inode: UInt64
    /// The kind of file; nil if the file system does not store it with the name.
    package let kind: FileStatus.Kind?

    init(inode: UInt64, type: UInt8) {
        self.inode = inode
        // The bits of st_mode, shifted: DTTOIF of readdir(3).
        kind = Int(type) == Int(DT_UNKNOWN) ? nil : FileStatus.Kind(mode: mode_t(type) << 12)
    }
}

extension Directory {
    /// Returns the names in this directory except "." and "..", in no order.
    ///
    /// The function reads all names before it returns, because deleting files while listing may make the kernel skip
    /// names.
    ///
    /// C: `openat2`, `lseek`, `getdents64`, `close`.
    ///
    /// - Complexity: O(*n*) in the names.
    package func names() throws(Errno) -> [String] {
        var names: [String] = []
        // Listing moves the offset, which duplicate descriptors share, so it opens the directory again.
        try openDirectory(".").forEachFile { name, _ in names.append(String(decoding: name)) }
        return names
    }

    /// Runs `body` with each name in this directory except "." and "..", in no order, as raw bytes.
    ///
    /// The function moves this directory's offset instead of using a separate descriptor, so the directory must not be
    /// listed concurrently. `body` must not delete files: that may make the kernel skip names. One system call returns
    /// about 370 names of 64 bytes; no memory is allocated per name.
    ///
    /// C: `lseek`, `getdents64`.
    ///
    /// - Complexity: O(*n*) in the names.
    package func forEachFile(_ body: (Span<UInt8>, ListedFile) -> Void) throws(Errno) {
        try descriptor.rewind()
        // The buffer size that glibc uses for `readdir`.
        try unsafe withUnsafeTemporaryAllocation(byteCount: 32768, alignment: 8) { (buffer) throws(Errno) in
            while true {
                let count = try systemCall(.listDirectory) {
                    unsafe cplatform_getdents64(descriptor.rawValue, buffer.baseAddress, buffer.count)
                }
                if count == 0 { return }
                unsafe Self.forEachFile(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]), body)
            }
        }
    }

    /// Runs `body` with each record of `buffer`.
    ///
    /// A record has the inode number (8 bytes), an offset (8), its own length (2), the type (1) and the name with a NUL:
    /// getdents64(2).
    @unsafe
    private static func forEachFile(
        in buffer: UnsafeRawBufferPointer,
        _ body: (Span<UInt8>, ListedFile) -> Void
    ) {
        guard let base = buffer.baseAddress else { return }
        var position = 0
        while position < buffer.count {
            let entry = unsafe base + position
            let inode = unsafe entry.loadUnaligned(as: UInt64.self)
            let length = unsafe Int(entry.loadUnaligned(fromByteOffset: 16, as: UInt16.self))
            let type = unsafe entry.load(fromByteOffset: 18, as: UInt8.self)
            let name = unsafe (entry + 19).assumingMemoryBound(to: UInt8.self)
            let size = unsafe strnlen(UnsafeRawPointer(name).assumingMemoryBound(to: CChar.self), length - 19)
            let bytes = unsafe Span(_unsafeElements: UnsafeBufferPointer(start: name, count: size))
            if !bytes.isSelfOrParent { body(bytes, ListedFile(inode: inode, type: type)) }
            position += length
        }
    }
}

extension Span<UInt8> {
    /// Whether the name is "." or "..".
    fileprivate var isSelfOrParent: Bool {
        let dot = UInt8(ascii: ".")
        return count == 1 && self[0] == dot || count == 2 && self[0] == dot && self[1] == dot
    }
}
