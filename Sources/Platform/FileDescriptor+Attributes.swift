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
///
/// Allocates what is returned, and for a value of more than 256 bytes the buffer.
func readAttribute(
    _ call: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
        // Holds a record with a key of usual length.
        return try unsafe readAttribute(upTo: 256, call)
    } catch {
        guard error == .outOfRange else { throw error }
        // The kernel's limit, xattr(7).
        return try unsafe readAttribute(upTo: 65536, call)
    }
}

private func readAttribute(
    upTo capacity: Int,
    _ call: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
) throws(Errno) -> [UInt8]? {
    var failure: Errno?
    let value = unsafe withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { buffer in
        do throws(Errno) {
            let count = try unsafe call(buffer)
            return unsafe [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        } catch {
            failure = error
            return []
        }
    }
    switch failure {
    case nil: return value
    case .noData: return nil
    case let error?: throw error
    }
}
