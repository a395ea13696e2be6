// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The packs that this process has mapped for reading, each at its first use.
///
/// A pack keeps its file when its row is used again, so a mapping stays valid. No process may delete or truncate the file.
@safe
final class PackFiles: Sendable {
    private let folder: Directory
    private let count: Int
    private nonisolated(unsafe) let mappings: UnsafeMutablePointer<AtomicLazyReference<MappedBytes>>

    init(in folder: consuming Directory, count: Int) {
        self.folder = folder
        self.count = count
        unsafe mappings = .allocate(capacity: count)
        for row in 0..<count { unsafe (mappings + row).initialize(to: AtomicLazyReference()) }
    }

    deinit {
        unsafe mappings.deinitialize(count: count)
        unsafe mappings.deallocate()
    }

    /// Returns the pack in the given row; nil if its file is missing or too short.
    ///
    /// Five system calls at the first use, then none.
    func pack(_ row: Int) throws(Errno) -> MappedBytes? {
        precondition(row >= 0 && row < count, "outside of the table")
        if let known = unsafe mappings[row].load() { return known }
        do throws(Errno) {
            let file = try folder.open(PackLayout.name(ofPack: row), .readOnly)
            guard try file.status().size >= PackLayout.packSize else { return nil }
            return unsafe mappings[row].storeIfNil(try MappedBytes(mapping: file, count: PackLayout.packSize))
        } catch {
            if error.isMissing || error.isNotRegularFile { return nil }
            throw error
        }
    }

    /// Opens the pack in the given row for appending, and locks it; nil if another process has locked it, or if it is missing
    /// and `creates` is false.
    ///
    /// A missing file of a pack that has been used is not created again: processes that have mapped the old file would not
    /// see the new one. The blocks are allocated, so that a full disk is an error here and not when a record is written.
    /// Five system calls.
    func open(_ row: Int, creates: Bool = false) throws(Errno) -> FileDescriptor? {
        let name = PackLayout.name(ofPack: row)
        let flags: OpenFlags = creates ? [.readWrite, .create] : .readWrite
        do throws(Errno) {
            let file = try folder.open(name, flags, mode: creates ? FileMode.file : 0)
            guard try file.tryLock(.exclusive) else { return nil }
            try file.allocate(PackLayout.packSize)
            return file
        } catch {
            if error == .noEntry, !creates { return nil }
            throw error
        }
    }
}
