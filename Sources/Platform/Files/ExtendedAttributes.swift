// SPDX-License-Identifier: Apache-2.0

import CPlatform

extension FileDescriptor {
    /// Returns the extended attribute's value, or nil if the file does not have it (ENODATA).
    ///
    /// C: `fgetxattr`.
    ///
    /// - Throws: ``Errno/notSupported`` if the file system does not support extended attributes.
    package func attribute(_ name: StaticString) throws(Errno) -> [UInt8]? {
        try unsafe attributeValue { buffer in
            unsafe cplatform_fgetxattr(rawValue, name.cString, buffer.baseAddress, buffer.count)
        }
    }

    /// Creates or replaces an extended attribute atomically.
    ///
    /// C: `fsetxattr`.
    package func setAttribute(_ name: StaticString, to value: Span<UInt8>) throws(Errno) {
        _ = try unsafe value.withUnsafeBytes { (value) throws(Errno) in
            try systemCall(.setAttribute) {
                unsafe cplatform_fsetxattr(rawValue, name.cString, value.baseAddress, value.count)
            }
        }
    }

    /// Removes an extended attribute if it exists.
    ///
    /// C: `fremovexattr`.
    package func removeAttribute(_ name: StaticString) throws(Errno) {
        do throws(Errno) {
            try systemCall(.setAttribute) { unsafe cplatform_fremovexattr(rawValue, name.cString) }
        } catch {
            if error != .noData { throw error }
        }
    }
}

extension Directory {
    /// Returns the value of a file's extended attribute, or nil if the file does not have it (ENODATA).
    ///
    /// C: `getxattrat` (Linux 6.13); on older kernels `openat2`, `fstat`, `fgetxattr`, `close`.
    ///
    /// - Throws: ``Errno/noEntry`` if the file does not exist, ``Errno/notSupported`` if the file system does not support
    ///   extended attributes.
    package func attribute(_ name: StaticString, of path: RelativePath) throws(Errno) -> [UInt8]? {
        guard KernelSupport.attributeCallsAt else { return try open(path, .readOnly).attribute(name) }
        let number = descriptor.rawValue
        return try unsafe attributeValue { buffer in
            unsafe cplatform_getxattrat(number, path.cPath, name.cString, buffer.baseAddress, buffer.count)
        }
    }

    /// Creates or replaces a regular file's extended attribute atomically.
    ///
    /// The function opens the file, because setxattrat(2) would also set the attribute of a directory, and would follow a
    /// symbolic link that replaces an intermediate directory.
    ///
    /// C: `openat2`, `fsetxattr`, `close`.
    ///
    /// - Throws: ``Errno/isDirectory``, ``Errno/tooManyLinks`` or ``Errno/noDeviceOrAddress`` for anything but a regular
    ///   file, or ``Errno/notPermitted`` for a pipe with a reader.
    package func setAttribute(
        _ name: StaticString,
        of path: RelativePath,
        to value: Span<UInt8>
    ) throws(Errno) {
        try openAny(path, .writeOnly, mode: 0).setAttribute(name, to: value)
    }
}

extension StaticString {
    @unsafe
    var cString: UnsafePointer<CChar> {
        unsafe UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
    }
}

/// Reads an attribute with a buffer of the usual size first, and of the maximum size after ERANGE.
///
/// The function allocates memory for the result, and for a value of more than 256 bytes also for the buffer.
private func attributeValue(_ call: (UnsafeMutableRawBufferPointer) -> Int) throws(Errno) -> [UInt8]? {
    // Large enough for a record with a key of usual length.
    var capacity = 256
    while true {
        do throws(Errno) {
            return try unsafe withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) {
                (buffer) throws(Errno) in
                let count = try systemCall(.getAttribute) { unsafe call(buffer) }
                return unsafe [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        } catch {
            if error == .noData { return nil }
            // The kernel's limit, xattr(7).
            guard error == .outOfRange, capacity < 65536 else { throw error }
            capacity = 65536
        }
    }
}
