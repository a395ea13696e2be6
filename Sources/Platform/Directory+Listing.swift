// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Directory {
    /// The names in this directory but "." and "..", in no order.
    ///
    /// C: `fdopendir`, `readdir`.
    ///
    /// All names are read before any is used: deleting while listing may make a directory skip some.
    ///
    /// - Complexity: O(*n*) in the names.
    package func names() throws(Errno) -> [String] {
        // A descriptor of its own: listing moves the offset, which duplicates share.
        let number = try open(".", [.readOnly, .directory]).release()
        guard let stream = unsafe fdopendir(number) else {
            let error = Errno.current
            FileDescriptor(owning: number).close()
            throw error
        }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                let error = Errno.current
                if error.rawValue != 0 { throw error }
                return names
            }
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { tuple in
                unsafe tuple.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
    }
}

extension FileDescriptor {
    /// Gives up ownership: the caller must see to the closing.
    consuming func release() -> CInt {
        let number = rawValue
        discard self
        return number
    }
}
