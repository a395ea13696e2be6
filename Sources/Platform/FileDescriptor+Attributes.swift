// SPDX-License-Identifier: Apache-2.0

import CPlatform

extension FileDescriptor {
    /// The extended attribute's value, or nil where there is none (ENODATA).
    ///
    /// C: `fgetxattr`.
    ///
    /// - Throws: ``Errno/notSupported`` where the file system has no such attributes.
    package func attribute(_ name: StaticString) throws(Errno) -> [UInt8]? {
        try unsafe readAttribute { (buffer) throws(Errno) in
            try valueOrErrno {
                unsafe cplatform_fgetxattr(rawValue, name.cString, buffer.baseAddress, buffer.count)
            }
        }
    }

    /// Creates or replaces an extended attribute in one step.
    ///
    /// C: `fsetxattr`.
    package func setAttribute(_ name: StaticString, to value: Span<UInt8>) throws(Errno) {
        try unsafe value.withUnsafeBytes { (buffer) throws(Errno) in
            try nothingOrErrno {
                unsafe cplatform_fsetxattr(rawValue, name.cString, buffer.baseAddress, buffer.count)
            }
        }
    }
}

extension StaticString {
    @unsafe
    var cString: UnsafePointer<CChar> {
        unsafe UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
    }
}

/// Reads an attribute with a buffer of usual size first, and the largest that there can be after ERANGE.
func readAttribute(
    _ call: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
) throws(Errno) -> [UInt8]? {
    // 256 bytes hold a record with a key of usual length; 64 KiB is the kernel's limit, xattr(7).
    for capacity in [256, 65536] {
        var failure: Errno?
        let value = unsafe [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            do throws(Errno) {
                count = try unsafe call(UnsafeMutableRawBufferPointer(buffer))
            } catch {
                failure = error
            }
        }
        switch failure {
        case nil: return value
        case .noData: return nil
        case .outOfRange?: continue
        case let error?: throw error
        }
    }
    throw .outOfRange
}
