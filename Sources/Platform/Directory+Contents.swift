// SPDX-License-Identifier: Apache-2.0

import CPlatform
package import FoundationEssentials
import Glibc

extension Directory {
    /// The whole file as `Data`, or nil where it does not hold exactly `count` bytes, or not those that
    /// `isValid` wants.
    ///
    /// C: `openat2`, `read`, `close`; from 1 MiB on `fstat` after the first, as a damaged record may promise any
    /// length. Two allocations. Never waits; what is no regular file is told of as by ``open(_:_:mode:)``.
    package func contents(
        of path: RelativePath,
        count: Int,
        isValid: (Span<UInt8>) -> Bool
    ) throws(Errno) -> Data? {
        if count >= 1 << 20 {
            guard let data = try open(path, .readOnly).readExactly(count), isValid(data.span) else {
                return nil
            }
            return data
        }
        guard count >= 0, let memory = unsafe malloc(count + 1) else { throw .outOfMemory }
        do throws(Errno) {
            let filled = try unsafe path.withCString { (path) throws(Errno) in
                try valueOrErrno {
                    unsafe cplatform_read_file(
                        descriptor.rawValue,
                        path,
                        memory,
                        count + 1
                    )
                }
            }
            // Looked at before it becomes `Data`, each access to which counts references.
            let bytes = unsafe UnsafeBufferPointer(
                start: memory.assumingMemoryBound(to: UInt8.self),
                count: count
            )
            if filled == count, isValid(unsafe Span(_unsafeElements: bytes)) {
                return unsafe Data(bytesNoCopy: memory, count: count, deallocator: .free)
            }
        } catch {
            unsafe free(memory)
            throw error
        }
        unsafe free(memory)
        return nil
    }
}
