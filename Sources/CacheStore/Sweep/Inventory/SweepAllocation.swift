// SPDX-License-Identifier: Apache-2.0

import Platform

/// What small objects take on disk, learned from some of them, so that the others need not be asked.
///
/// Where the file system gives files of one number of blocks all the same space: then the length that an entry's record
/// states tells it. Of each number of blocks the objects of the first shard are asked and one in 32 of those after, and
/// once two differ all the rest. Short ones, which may lie in the inode, are told apart by lengths that such inodes
/// have room for. So what no object's length tells (clusters of several blocks, attributes that
/// somebody's policy adds) is counted as it is, and what one alone would tell, a file that was cut short, is counted
/// too large: until it is read, and found to be damaged, or asked by chance.
struct SweepAllocation: Sendable {
    /// Of a length for which nothing is learned.
    static let unknownClass: UInt8 = 0

    /// Blocks: of so many an inode of ext2 to ext4 names each by itself, and nothing is allocated beside them.
    ///
    /// It has room for 4 extents, or 12 blocks. The longest length is also the most that a record which states a wrong
    /// one can make of its object.
    private static let mostBlocks = 4

    /// Bytes: up to so many may lie in the inode (`inline_data` of ext4, which is not its default): in what points to
    /// blocks otherwise, and in what an inode of 256 bytes and the largest in use, of 1 KiB, leave.
    ///
    /// Where some of a class do and others do not, all are asked.
    private static let inlineLengths = [60, 256, 1024]

    /// Objects of one number of blocks.
    private struct Class {
        /// nil until one was asked, and where two differ.
        var size: AllocatedSize?
        var isVarying = false
        /// How many could have gone unasked.
        var count = 0
    }

    private let blockSize: Int
    private var classes = [Class](repeating: Class(), count: Self.mostBlocks + inlineLengths.count + 1)

    /// - Parameter blockSize: in which the file system gives out space; nil where the length does not tell.
    init(blockSize: Int64?) {
        self.blockSize = blockSize.map(Int.init) ?? 0
    }

    /// The class of objects of that length.
    func classNumber(ofLength length: Int) -> UInt8 {
        guard blockSize > 0, length > 0, length <= Self.mostBlocks * blockSize else {
            return Self.unknownClass
        }
        if let index = Self.inlineLengths.firstIndex(where: { length <= $0 }) {
            return UInt8(Self.mostBlocks + 1 + index)
        }
        return UInt8((length + blockSize - 1) / blockSize)
    }

    /// What an object of that class takes; nil: ask it.
    mutating func size(ofClass number: UInt8) -> AllocatedSize? {
        guard number != Self.unknownClass, let size = classes[Int(number)].size else { return nil }
        classes[Int(number)].count += 1
        return classes[Int(number)].count.isMultiple(of: 32) ? nil : size
    }

    /// Takes down what an object of that class was found to take.
    mutating func note(_ size: AllocatedSize, ofClass number: UInt8) {
        guard number != Self.unknownClass else { return }
        let known = classes[Int(number)]
        if known.isVarying { return }
        classes[Int(number)].isVarying = known.size.map { $0 != size } ?? false
        classes[Int(number)].size = classes[Int(number)].isVarying ? nil : size
    }
}
