// SPDX-License-Identifier: Apache-2.0

import CSimulator
import Glibc

/// A file or directory of the simulated file system: an inode.
final class SimulatedFile {
    static let pageSize = 4096

    let number: UInt64
    let isDirectory: Bool
    var mode: UInt32
    var owner: UInt32 = 1000
    var group: UInt32 = 1000
    /// The name that it got last.
    var name = ""
    /// Whether that is the name of an object.
    var isObject = false
    /// The number of names.
    var links = 0
    /// The number of open descriptions and mappings, which keep a file without a name alive.
    var uses = 0
    private(set) var size = 0
    /// Whether each page of the contents has a block.
    private(set) var blocks: [Bool] = []
    var attributes: [String: [UInt8]] = [:]
    /// The names in a directory.
    var names: [String: SimulatedFile] = [:]
    unowned(unsafe) var parent: SimulatedFile?

    var accessed: Int64
    var modified: Int64
    var changed: Int64
    let born: Int64

    /// The open descriptions that hold a flock(2).
    var sharers: [SimulatedDescription] = []
    var exclusive: SimulatedDescription?
    /// The bytes locked by F_OFD_SETLK.
    var ranges: [Int: SimulatedDescription] = [:]

    private var memory: UnsafeMutableRawPointer?
    private var capacity = 0
    /// The descriptor of the memory, which never moves once the file is mapped; -1 until then.
    private var memoryDescriptor: Int32 = -1

    init(number: UInt64, isDirectory: Bool, mode: UInt32, now: Int64) {
        self.number = number
        self.isDirectory = isDirectory
        self.mode = mode
        accessed = now
        modified = now
        changed = now
        born = now
    }

    deinit { discard() }

    /// Frees the contents.
    func discard() {
        names = [:]
        if memoryDescriptor >= 0 {
            simulator_unmap_memory(memory, capacity)
            simulator_close_memory(memoryDescriptor)
        } else {
            memory?.deallocate()
        }
        memory = nil
        memoryDescriptor = -1
        capacity = 0
        size = 0
    }

    /// Whether an attribute needs a block of its own, as on ext4 with inodes of 256 bytes.
    private var hasAttributeBlock: Bool {
        let bytes = attributes.reduce(0) {
            $0 + 16 + ($1.key.utf8.count + 3) / 4 * 4 + ($1.value.count + 3) / 4 * 4
        }
        return bytes > 100
    }

    /// The allocated pages.
    var allocatedPages: Int {
        if isDirectory { return 1 }
        return blocks.reduce(0) { $1 ? $0 + 1 : $0 } + (hasAttributeBlock ? 1 : 0)
    }

    private func reserve(_ count: Int) {
        guard count > capacity else { return }
        precondition(memoryDescriptor < 0, "a mapped file does not grow")
        let larger = max(count, capacity * 2, Self.pageSize)
        let place = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: Self.pageSize)
        memset(place, 0, larger)
        if let memory {
            place.copyMemory(from: memory, byteCount: size)
            memory.deallocate()
        }
        memory = place
        capacity = larger
    }

    /// Returns how many pages a write of these bytes would allocate.
    func newPages(for range: Range<Int>) -> Int {
        guard !range.isEmpty else { return 0 }
        return (range.lowerBound / Self.pageSize...(range.upperBound - 1) / Self.pageSize).reduce(0) {
            $1 < blocks.count && blocks[$1] ? $0 : $0 + 1
        }
    }

    /// Gives each page of the range a block.
    func allocate(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        let last = (range.upperBound - 1) / Self.pageSize
        if last >= blocks.count { blocks += Array(repeating: false, count: last + 1 - blocks.count) }
        for page in range.lowerBound / Self.pageSize...last { blocks[page] = true }
        reserve(range.upperBound)
        size = max(size, range.upperBound)
    }

    func write(_ bytes: UnsafeRawPointer, _ count: Int, at offset: Int) {
        guard count > 0 else { return }
        allocate(offset..<offset + count)
        memory.map { $0 + offset }?.copyMemory(from: bytes, byteCount: count)
    }

    /// Changes a bit of a byte, and in a file without bytes one of an attribute.
    func flip(_ offset: Int) {
        if offset < size, let memory {
            memory.storeBytes(
                of: memory.load(fromByteOffset: offset, as: UInt8.self) ^ 4,
                toByteOffset: offset,
                as: UInt8.self
            )
        } else if let name = attributes.keys.min(), let count = attributes[name]?.count, count > 0 {
            attributes[name]?[offset % count] ^= 4
        }
    }

    func clear(_ range: Range<Int>) {
        if let memory { memset(memory + range.lowerBound, 0, range.count) }
    }

    func read(into buffer: UnsafeMutableRawPointer, _ count: Int, at offset: Int) -> Int {
        let count = max(0, min(count, size - offset))
        if count > 0, let memory { buffer.copyMemory(from: memory + offset, byteCount: count) }
        return count
    }

    func truncate(to length: Int) {
        if length > size {
            reserve(length)
        } else {
            if let memory { memset(memory + length, 0, size - length) }
            let pages = (length + Self.pageSize - 1) / Self.pageSize
            if pages < blocks.count { blocks.removeLast(blocks.count - pages) }
        }
        size = length
    }

    /// Returns the first offset of data from `offset` on; nil if only a hole follows.
    func data(from offset: Int) -> Int? {
        guard offset < size else { return nil }
        let page = offset / Self.pageSize
        if page < blocks.count, blocks[page] { return offset }
        return blocks.indices.first { $0 > page && blocks[$0] }.map { $0 * Self.pageSize }
    }

    /// Maps the file at a new address; nil if the machine has no memory.
    func map(_ length: Int) -> UnsafeMutableRawPointer? {
        if memoryDescriptor < 0 {
            let whole = (max(length, size) + Self.pageSize - 1) / Self.pageSize * Self.pageSize
            let descriptor = simulator_make_memory(whole)
            guard descriptor >= 0, let place = simulator_map_memory(descriptor, whole) else { return nil }
            if let memory {
                place.copyMemory(from: memory, byteCount: min(size, whole))
                memory.deallocate()
            }
            memory = place
            capacity = whole
            memoryDescriptor = descriptor
        }
        return simulator_map_memory(memoryDescriptor, length)
    }
}

/// An open file description, open(2): what duplicates of a descriptor share.
final class SimulatedDescription {
    let file: SimulatedFile
    let flags: Int32
    var offset = 0
    var descriptors = 1
    /// The names that are left of a listing; nil before it begins.
    var listing: [(name: String, file: SimulatedFile)]?

    init(_ file: SimulatedFile, flags: Int32) {
        self.file = file
        self.flags = flags
        file.uses += 1
    }
}
