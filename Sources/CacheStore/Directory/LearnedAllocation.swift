// SPDX-License-Identifier: Apache-2.0

import Platform

/// What files take on disk by the length of what is in them, learned from files that were asked.
///
/// A file system gives a longer file no less than a shorter one. So where two lengths take the same, all lengths
/// between them take that too. Where it turns out otherwise nothing is known, and each file is asked.
struct LearnedAllocation: ~Copyable, Sendable {
    /// Lengths that take the same.
    ///
    /// Not private, as the compiler can't lay out a noncopyable type of private parts in other files (Swift 6.3).
    struct Step {
        let bytes: Int64
        var shortest: Int
        var longest: Int
    }

    struct State {
        var steps: [Step] = []
        var isVarying = false
    }

    /// Lengths up to 16 KiB take 1 to 4 blocks of 4 KiB, or nothing; of more steps the first are enough.
    private static let mostSteps = 8

    private let state = Locked(State())

    /// What a file with so many bytes takes; nil: ask it.
    func size(ofLength length: Int) -> Int64? {
        state.withLock { state in
            for step in state.steps where step.shortest <= length && length <= step.longest {
                return step.bytes
            }
            return nil
        }
    }

    /// Takes down what a file with so many bytes was found to take.
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

extension StoreDirectory {
    /// Longer ones may take blocks beside those of their contents, and are asked each time: that costs little beside
    /// writing them.
    private static let longestLearned = 16 * 1024

    /// What a file that holds `length` bytes, all of its contents, was given by the file system.
    ///
    /// One system call for a long one, and where it is not known yet.
    func allocation(of file: borrowing FileDescriptor, length: Int) -> Int64 {
        if let known = contentSizes.size(ofLength: length) { return known }
        let found = bestEffort { () throws(Errno) in try file.status().allocatedSize }
        guard let found else { return allocation(of: length) }
        if length <= Self.longestLearned { contentSizes.note(found, ofLength: length) }
        // What a file got in advance because it was written piece by piece goes as it is closed.
        return fileSystem.kind.givesRoomInAdvance ? min(found, allocation(of: length)) : found
    }

    /// The same before it is written; no system call.
    func expectedAllocation(of length: Int) -> Int64 {
        contentSizes.size(ofLength: length) ?? allocation(of: length)
    }
}
