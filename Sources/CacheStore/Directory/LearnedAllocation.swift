// SPDX-License-Identifier: Apache-2.0

import Platform

/// The space that files take on disk, by length, learned from the status of earlier files.
///
/// A file system allocates no less to a longer file than to a shorter one. So if files of two lengths take the same space,
/// files of all lengths between them do, too. If a file contradicts this, nothing is learned, and each file is checked.
struct LearnedAllocation: ~Copyable, Sendable {
    /// A range of lengths that take the same space.
    ///
    /// Not private, because the compiler can't lay out a noncopyable type with private parts in other files (Swift 6.3).
    struct Step {
        let bytes: Int64
        var shortest: Int
        var longest: Int
    }

    struct State {
        var steps: [Step] = []
        var isVarying = false
    }

    /// The maximum number of steps: short files take 1 to 4 blocks, or nothing.
    ///
    /// If there are more, the first ones found are enough.
    private static let mostSteps = 8

    private let state = Locked(State())

    /// Returns the space that a file of this length takes; nil if the caller must check the file.
    func size(ofLength length: Int) -> Int64? {
        state.withLock { state in
            for step in state.steps where step.shortest <= length && length <= step.longest {
                return step.bytes
            }
            return nil
        }
    }

    /// Records the space that a file of this length was found to take.
    func note(_ bytes: Int64, ofLength length: Int) {
        state.withLock { state in
            if state.isVarying { return }
            var step = Step(bytes: bytes, shortest: length, longest: length)
            var others = state.steps
            if let index = others.firstIndex(where: { $0.bytes == bytes }) {
                step.shortest = min(others[index].shortest, length)
                step.longest = max(others[index].longest, length)
                others.remove(at: index)
            } else if others.count == Self.mostSteps {
                return
            }
            state.isVarying = others.contains {
                $0.bytes < bytes ? $0.longest >= step.shortest : $0.shortest <= step.longest
            }
            state.steps = state.isVarying ? [] : others + [step]
        }
    }
}

extension Control {
    /// The longest file, in blocks, whose size is learned.
    ///
    /// Longer files may take blocks besides those of their contents. So they are checked each time, which costs little
    /// compared with writing them.
    private static let mostLearnedBlocks: Int64 = 4

    /// Returns the space that the file system has allocated to a file whose contents are `length` bytes.
    ///
    /// One system call for a long file, and for a length that is not known yet.
    func allocation(of file: borrowing FileDescriptor, length: Int) -> Int64 {
        if let known = directory.contentSizes.size(ofLength: length) { return known }
        let rounded = directory.allocation(of: length)
        let allocated = bestEffort { () throws(Errno) in try file.status().allocatedSize }
        guard let allocated else { return rounded }
        let found = directory.fileSystem.kind.overstatesAllocations ? min(allocated, rounded) : allocated
        if isLearned(length) {
            directory.contentSizes.note(found, ofLength: length)
        } else if indexBlocks(ofLength: length) > 0 {
            return max(found, rounded + indexBlocks(ofLength: length))
        }
        return found
    }

    /// Returns the space that a file will take, before it is written; no system call.
    func expectedAllocation(of length: Int) -> Int64 {
        if let known = directory.contentSizes.size(ofLength: length) { return known }
        return directory.allocation(of: length) + (isLearned(length) ? 0 : indexBlocks(ofLength: length))
    }

    private func isLearned(_ length: Int) -> Bool {
        length <= Self.mostLearnedBlocks * directory.fileSystem.blockSize
    }

    // MARK: Index blocks

    /// Returns the bytes that a longer file may take besides its contents if free space is fragmented.
    ///
    /// An index block of ext4 has space for 340 extents. The file system allocates it when it writes the contents to the
    /// medium, after the put has checked the size.
    private func indexBlocks(ofLength length: Int) -> Int64 {
        guard words?.load(.indexBlocks) == 1 else { return 0 }
        let blockSize = directory.fileSystem.blockSize
        return (1 + Int64(clamping: length) / (340 * blockSize)) * blockSize
    }

    /// Returns whether an object takes more space than its contents, although it is short enough to need no more if
    /// contiguous.
    func hasIndexBlocks(_ status: FileStatus) -> Bool {
        // An overstated allocation looks the same.
        !directory.fileSystem.kind.overstatesAllocations && status.size <= 1 << 20
            && !isLearned(Int(status.size))
            && status.allocatedSize > directory.allocation(of: Int(status.size))
    }

    /// Records whether objects take more space than their contents.
    func noteIndexBlocks(_ areThere: Bool) {
        guard let words = writableWords, words.load(.indexBlocks) != (areThere ? 1 : 0) else { return }
        words.store(areThere ? 1 : 0, at: .indexBlocks)
    }
}
