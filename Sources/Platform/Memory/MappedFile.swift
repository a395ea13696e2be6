// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc
public import Synchronization

/// A file mapped into memory and shared with every process that maps it (MAP_SHARED), as 64-bit words.
///
/// The words are only ever used atomically. What one process changes all others see at once, whether or
/// not it lives to unmap; the medium sees it some time later. The file must be as long as what is mapped, and
/// have all its blocks: to touch a page that the file system can't provide kills the process with SIGBUS.
@safe
package final class MappedFile: Sendable {
    /// Valid as long as this object is.
    package let words: MappedWords
    /// False where the mapping is for reading only: to change a word would kill the process with SIGSEGV.
    package let isWritable: Bool

    private nonisolated(unsafe) let base: UnsafeMutableRawPointer
    private let byteCount: Int

    /// Maps the first `wordCount` words; the file can be closed then.
    ///
    /// C: `mmap`.
    ///
    /// - Throws: ENODEV where the file system can't map files.
    package init(
        mapping file: borrowing FileDescriptor,
        wordCount: Int,
        isWritable: Bool
    ) throws(Errno) {
        byteCount = wordCount * 8
        self.isWritable = isWritable
        let protection = isWritable ? PROT_READ | PROT_WRITE : PROT_READ
        let count = byteCount
        // MAP_FAILED is -1, too.
        let address = try systemCall(.map) {
            unsafe Int(bitPattern: mmap(nil, count, protection, MAP_SHARED, file.rawValue, 0))
        }
        guard let start = unsafe UnsafeMutableRawPointer(bitPattern: address) else { throw .invalidArgument }
        unsafe base = start
        words = unsafe MappedWords(at: start, count: wordCount)
    }

    /// Lets go of the file.
    ///
    /// ``words`` stays valid: from now on it is memory of this process alone, all 0 but for `value` at `index`. A thread
    /// that has seen one word of it sees the others, too. If there is no memory for that, the file stays mapped.
    ///
    /// C: `mmap`, `mremap`. Takes a page, and one more for each that is written from now on.
    package func detach(leaving value: UInt64, at index: Int) {
        precondition(index >= 0 && index < byteCount / 8, "outside of the mapping")
        let (count, flags) = (byteCount, MAP_PRIVATE | MAP_ANONYMOUS)
        let address =
            SystemCall.map.isRefused
            ? -1 : unsafe Int(bitPattern: mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0))
        guard address != -1, let pages = unsafe UnsafeMutableRawPointer(bitPattern: address) else { return }
        unsafe pages.storeBytes(of: value, toByteOffset: index * 8, as: UInt64.self)
        // In one step: whoever looks at a page that is being replaced waits for the kernel.
        if unsafe cplatform_replace_pages(pages, count, base) != 0 { unsafe munmap(pages, count) }
    }

    deinit {
        // Fails only for an address that is none of a mapping.
        let failed = unsafe munmap(base, byteCount) == -1
        precondition(!failed, "unmapped what was not mapped")
    }
}

/// A view of words that are shared with other threads or processes.
///
/// Copied without counting references: who holds one sees to it that the memory stays mapped. On x86-64 a
/// load is one `mov`, on every processor free of locks.
@safe
@usableFromInline
package struct MappedWords: Sendable {
    @usableFromInline nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>
    @usableFromInline package let count: Int

    /// Views `count` words at `address`, which are aligned to 8 bytes and stay as long as this is used.
    @unsafe
    @inlinable
    package init(at address: UnsafeMutableRawPointer, count: Int) {
        unsafe words = address.assumingMemoryBound(to: Atomic<UInt64>.self)
        self.count = count
    }

    /// Where the words are, to tell one mapping from another and to make this view anew; never 0.
    @inlinable package var address: UInt { unsafe UInt(bitPattern: words) }

    /// Views what ``address`` said, while that is still mapped; nil for 0.
    @unsafe
    @inlinable
    package init?(address: UInt, count: Int) {
        guard let base = unsafe UnsafeMutableRawPointer(bitPattern: address) else { return nil }
        unsafe self.init(at: base, count: count)
    }

    /// Where a word is.
    @unsafe
    @inlinable
    func word(_ index: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(index >= 0 && index < count, "outside of the mapping")
        return unsafe words + index
    }

    /// The word, with all that was done before it was stored (acquire).
    @inlinable
    package func load(_ index: Int) -> UInt64 {
        unsafe word(index).pointee.load(ordering: .acquiring)
    }

    /// The first of these words that has a bit of `mask`, each loaded like ``load(_:)``; nil if none has.
    package func firstIndex(in range: Range<Int>, havingAnyOf mask: UInt64) -> Int? {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the mapping")
        let place = unsafe UnsafeRawPointer(words + range.lowerBound).assumingMemoryBound(to: UInt64.self)
        let index = unsafe cplatform_first_word(place, range.count, mask)
        return index < range.count ? range.lowerBound + index : nil
    }

    /// Has the word's cache line fetched without waiting for it.
    package func prefetch(_ index: Int) {
        unsafe cplatform_prefetch(word(index))
    }

    /// Sets the word; who loads it sees all that was done before (release).
    package func store(_ value: UInt64, at index: Int) {
        unsafe word(index).pointee.store(value, ordering: .releasing)
    }

    /// Adds, wrapping, in one step with everything before and after in its place; the word as it was.
    @discardableResult
    package func add(_ amount: UInt64, at index: Int) -> UInt64 {
        unsafe word(index).pointee.wrappingAdd(amount, ordering: .sequentiallyConsistent).oldValue
    }

    /// Adds to a word that is a mere sum: nothing else is ordered by it.
    @inlinable
    package func count(_ amount: UInt64, at index: Int) {
        unsafe word(index).pointee.wrappingAdd(amount, ordering: .relaxed)
    }

    /// Sets the bits of `mask` too, in one step with everything before and after in its place.
    package func setBits(_ mask: UInt64, at index: Int) {
        unsafe word(index).pointee.bitwiseOr(mask, ordering: .sequentiallyConsistent)
    }

    /// Replaces the word if it is `expected`; false where it is not.
    package func replace(_ expected: UInt64, by value: UInt64, at index: Int) -> Bool {
        unsafe word(index).pointee.compareExchange(
            expected: expected,
            desired: value,
            ordering: .sequentiallyConsistent
        ).exchanged
    }
}

/// One word among shared ones.
package struct MappedWord: Sendable {
    private let words: MappedWords
    private let index: Int

    package init(_ index: Int, of words: MappedWords) {
        self.words = words
        self.index = index
    }

    /// What ``MappedWords/load(_:)`` and ``MappedWords/store(_:at:)`` do.
    package var value: UInt64 {
        get { words.load(index) }
        nonmutating set { words.store(newValue, at: index) }
    }

    /// Replaces the word if it is `expected`; false where it is not.
    @discardableResult
    package func replace(_ expected: UInt64, by value: UInt64) -> Bool {
        words.replace(expected, by: value, at: index)
    }
}

/// Words of this process's own, all 0 at first, which begin a cache line.
@safe
package final class WordBlock: Sendable {
    /// Valid as long as this object is.
    package let words: MappedWords

    private nonisolated(unsafe) let base: UnsafeMutableRawPointer

    package init(count: Int) {
        unsafe base = UnsafeMutableRawPointer.allocate(byteCount: count * 8, alignment: 64)
        unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: count * 8)
        words = unsafe MappedWords(at: base, count: count)
    }

    deinit {
        unsafe base.deallocate()
    }
}
