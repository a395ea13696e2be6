// SPDX-License-Identifier: Apache-2.0

import CPlatform
package import FoundationEssentials
import Glibc

/// A file mapped for reading (MAP_SHARED), whose bytes other processes may overwrite at any moment.
///
/// A caller copies bytes and checks the copy. The file must stay at least as long as the mapping: touching a page beyond
/// its end, or one that the medium can't read, kills the process with SIGBUS.
@safe
package final class MappedBytes: Sendable {
    /// The length of the mapping in bytes.
    package let count: Int

    private nonisolated(unsafe) let base: UnsafeRawPointer

    /// Maps the first `count` bytes; the file can be closed afterwards.
    ///
    /// C: `mmap`.
    package init(mapping file: borrowing FileDescriptor, count: Int) throws(Errno) {
        self.count = count
        // MAP_FAILED is -1, too.
        let address = try systemCall(.map) {
            unsafe Int(bitPattern: mmap(nil, count, PROT_READ, MAP_SHARED, file.rawValue, 0))
        }
        guard let start = unsafe UnsafeRawPointer(bitPattern: address) else { throw .invalidArgument }
        unsafe base = start
    }

    deinit {
        // Fails only for an address that is not mapped.
        let failed = unsafe munmap(UnsafeMutableRawPointer(mutating: base), count) == -1
        precondition(!failed, "the pages were not mapped")
    }

    /// Returns the little-endian number in the eight bytes at `offset`.
    package func number(at offset: Int) -> UInt64 {
        precondition(offset >= 0 && offset <= count - 8, "outside of the mapping")
        return unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Returns the CRC-32C of the bytes in `range`.
    package func checksum(_ range: Range<Int>) -> UInt32 {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the mapping")
        return unsafe cplatform_crc32c_update(0, base + range.lowerBound, range.count, false)
    }

    /// Returns a copy of the bytes in `range`.
    package func bytes(_ range: Range<Int>) -> [UInt8] {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the mapping")
        return unsafe [UInt8](UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count))
    }

    /// Returns a copy of the bytes in `range`.
    ///
    /// Two allocations.
    ///
    /// - Throws: ``Errno/outOfMemory``.
    package func data(_ range: Range<Int>) throws(Errno) -> Data {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the mapping")
        let data = try unsafe Data.filled(range.count) { (buffer) throws(Errno) in
            unsafe buffer.copyMemory(
                from: UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
            )
            return true
        }
        return data ?? Data()
    }
}
