// SPDX-License-Identifier: Apache-2.0

import CPlatform

extension Directory {
    /// The value of a file's extended attribute, or nil where the file has none (ENODATA).
    ///
    /// One system call, `getxattrat` (Linux 6.13); on older kernels four: `openat`, `fstat`, `fgetxattr`, `close`.
    ///
    /// - Throws: ``Errno/noEntry`` where there is no such file, ``Errno/notSupported`` where the file
    ///   system has no extended attributes.
    package func attribute(_ name: StaticString, of path: RelativePath) throws(Errno) -> [UInt8]? {
        guard KernelSupport.attributeCallsAt else {
            return try open(path, .readOnly).attribute(name)
        }
        return try unsafe path.withCString { (path) throws(Errno) in
            try unsafe readAttribute { (buffer) throws(Errno) in
                try valueOrErrno {
                    unsafe cplatform_getxattrat(
                        descriptor.rawValue,
                        path,
                        name.cString,
                        buffer.baseAddress,
                        buffer.count
                    )
                }
            }
        }
    }

    /// Creates or replaces a file's extended attribute in one step.
    ///
    /// One system call, `setxattrat` (Linux 6.13); on older kernels four: `openat`, `fstat`, `fsetxattr`, `close`.
    package func setAttribute(_ name: StaticString, of path: RelativePath, to value: Span<UInt8>)
        throws(Errno)
    {
        guard KernelSupport.attributeCallsAt else {
            return try open(path, .writeOnly).setAttribute(name, to: value)
        }
        try unsafe path.withCString { (path) throws(Errno) in
            try unsafe value.withUnsafeBytes { (buffer) throws(Errno) in
                try nothingOrErrno {
                    unsafe cplatform_setxattrat(
                        descriptor.rawValue,
                        path,
                        name.cString,
                        buffer.baseAddress,
                        buffer.count
                    )
                }
            }
        }
    }
}
