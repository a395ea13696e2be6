// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Directory {
    /// Runs `body` with each name in this directory but "." and "..", in no order, as the bytes that it has.
    ///
    /// `body` must not delete: that may make a directory skip names. About 90 names of 64 bytes come with one
    /// system call; nothing is allocated for a name.
    ///
    /// C: `fdopendir`, `readdir`.
    ///
    /// - Complexity: O(*n*) in the names.
    package func forEachName(_ body: (Span<UInt8>) -> Void) throws(Errno) {
        // A descriptor of its own: listing moves the offset, which duplicates share.
        let number = try openDirectoryNumber(".")
        guard let stream = unsafe fdopendir(number) else {
            let error = Errno.current
            FileDescriptor(owning: number).close()
            throw error
        }
        defer { unsafe closedir(stream) }
        while true {
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                let error = Errno.current
                if error.rawValue != 0 { throw error }
                return
            }
            unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                let length = unsafe strlen(UnsafeRawPointer(name).assumingMemoryBound(to: CChar.self))
                let bytes = unsafe UnsafeRawBufferPointer(start: name, count: length)
                    .assumingMemoryBound(to: UInt8.self)
                let span = unsafe Span(_unsafeElements: bytes)
                if !span.isSelfOrParent { body(span) }
            }
        }
    }

    /// The names in this directory but "." and "..", in no order.
    ///
    /// All are read before any is used: deleting while listing may make a directory skip some.
    ///
    /// - Complexity: O(*n*) in the names.
    package func names() throws(Errno) -> [String] {
        var names: [String] = []
        try forEachName { names.append(String(decoding: $0)) }
        return names
    }
}

extension Span<UInt8> {
    /// Whether it is "." or "..".
    var isSelfOrParent: Bool {
        let dot = UInt8(ascii: ".")
        return count == 1 && self[0] == dot || count == 2 && self[0] == dot && self[1] == dot
    }
}

extension String {
    /// The text of UTF-8 bytes; what is none is replaced by U+FFFD.
    package init(decoding bytes: Span<UInt8>) {
        self = unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
