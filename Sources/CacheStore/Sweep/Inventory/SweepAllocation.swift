// SPDX-License-Identifier: Apache-2.0

import Platform

/// The size on disk of small objects, derived from a sample of them, so that the others need no system call.
///
/// This works if the file system gives all files with the same number of blocks the same space: then the length in an
/// entry's record determines it. For each number of blocks the objects of the first shard are checked, later one in 32, and
/// all others once two differ. Short objects, which may be stored in the inode, are classified by the lengths that fit into
/// such inodes. So if the length does not determine the size (clusters of several blocks, attributes added by a security
/// policy), the actual size is counted. A single deviating file, such as a truncated one, is counted too large until it is
/// read and found damaged, or is checked by chance.
struct SweepAllocation: Sendable {
    /// The class of lengths whose size is not predicted.
    static let unknownClass: UInt8 = 0

    /// In blocks: an inode of ext2 to ext4 refers to this many directly, and nothing else is allocated for them.
    ///
    /// It has room for 4 extents, or 12 blocks. The limit also bounds the size that a record with a wrong length can assign
    /// to its object.
    private static let mostBlocks = 4

    /// In bytes: objects up to these lengths may be stored in the inode (`inline_data` of ext4, which is not the default).
    ///
    /// They fit into the block map, and into the free space of an inode of 256 bytes and of 1 KiB, the largest in use.
    ///
    /// If only some objects of a class are stored there, all of them are checked.
    private static let inlineLengths = [60, 256, 1024]

    /// The objects with one number of blocks.
    private struct Class {
        /// nil until an object was checked, and if two differ.
        var size: AllocatedSize?
        var isVarying = false
        /// The number of objects that needed no check.
        var count = 0
    }

    private let blockSize: Int
    private var classes = [Class](repeating: Class(), count: Self.mostBlocks + inlineLengths.count + 1)

    /// - Parameter blockSize: the unit of allocation of the file system; nil if the length does not determine the size.
    init(blockSize: Int64?) {
        self.blockSize = blockSize.map(Int.init) ?? 0
    }

    /// Returns the class of objects of that length.
    func classNumber(ofLength length: Int) -> UInt8 {
        guard blockSize > 0, length > 0, length <= Self.mostBlocks * blockSize else {
            return Self.unknownClass
        }
        if let index = Self.inlineLengths.firstIndex(where: { length <= $0 }) {
            return UInt8(Self.mostBlocks + 1 + index)
        }
        return UInt8((length + blockSize - 1) / blockSize)
    }

    /// Returns the size on disk of an object of that class, or nil if the object must be checked.
    mutating func size(ofClass number: UInt8) -> AllocatedSize? {
        guard number != Self.unknownClass, let size = classes[Int(number)].size else { return nil }
        classes[Int(number)].count += 1
        return classes[Int(number)].count.isMultiple(of: 32) ? nil : size
    }

    /// Records the size on disk of an object of that class.
    mutating func note(_ size: AllocatedSize, ofClass number: UInt8) {
        guard number != Self.unknownClass else { return }
        let known = classes[Int(number)]
        if known.isVarying { return }
        classes[Int(number)].isVarying = known.size.map { $0 != size } ?? false
        classes[Int(number)].size = classes[Int(number)].isVarying ? nil : size
    }
}
