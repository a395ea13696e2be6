// SPDX-License-Identifier: Apache-2.0

import Platform

/// The sizes on disk of small objects, predicted from a sample, so that the other objects need no system call.
///
/// This works if the file system gives the same space to all files with the same number of blocks: then the length in an
/// entry's record determines the size. For each number of blocks, the sweep checks the objects of the first shard, and
/// later one object in 32. It checks all of them as soon as two sizes differ. Objects that may be short enough to be
/// stored in the inode are classified by the lengths that fit into inodes. So if the length does not determine the size
/// (clusters of several blocks, attributes added by a security policy), the actual sizes are counted. A single file that
/// deviates, such as a truncated one, is counted with too large a size until it is read and found damaged, or is checked
/// by chance.
struct SweepAllocation: Sendable {
    /// The class of lengths whose size is not predicted.
    static let unknownClass: UInt8 = 0

    /// The largest number of blocks of an object whose size is predicted.
    ///
    /// An inode refers directly to 4 extents (ext4) or to 12 blocks (ext2 and ext3), so nothing else is allocated for
    /// such an object. The limit also bounds the size that a record with a wrong length can assign to its object.
    private static let mostBlocks = 4

    /// The lengths in bytes up to which objects may be stored in the inode (`inline_data` of ext4, which is not the
    /// default).
    ///
    /// They fit into the block map, into the free space of an inode of 256 bytes, and into that of an inode of 1 KiB, the
    /// largest in use.
    ///
    /// If only some objects of a class are stored in the inode, all objects of the class are checked.
    private static let inlineLengths = [60, 256, 1024]

    /// What is known about the objects of one class.
    private struct Class {
        /// The size of all objects of the class; nil before the first one was checked, and if two sizes differ.
        var size: AllocatedSize?
        var isVarying = false
        /// The number of objects since the size became known; one in 32 of them is checked.
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
