// SPDX-License-Identifier: Apache-2.0

import Glibc
public import Synchronization

#if DEBUG || SIMULATED
    // For the hook of the simulator.
    public import CPlatform
#else
    import CPlatform
#endif

/// A file mapped into memory as 64-bit words and shared with every process that maps it (MAP_SHARED).
///
/// The words are only accessed atomically. All processes see each other's changes at once, even those of a process that
/// is killed; the changes reach the storage device some time later. The file must be at least as long as the mapping, and
/// have all its blocks: touching a page that the file system can't provide kills the process with SIGBUS.
@safe
package final class MappedFile: Sendable {
    /// The mapped words, valid for the lifetime of this object.
    package let words: MappedWords
    /// Whether the words may be changed; changing a read-only mapping kills the process with SIGSEGV.
    package let isWritable: Bool

    private nonisolated(unsafe) let base: UnsafeMutableRawPointer
    private let byteCount: Int

    /// Maps the first `wordCount` words; the file can be closed afterwards.
    ///
    /// C: `mmap`.
    ///
    /// - Throws: ENODEV if the file system can't map files.
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

    /// Replaces the mapped file by private memory.
    ///
    /// ``words`` stays valid: from now on its words belong to this process alone, and all are 0 except for `value` at
    /// `index`. A thread that has read one of the new words sees only new words from then on. If memory is exhausted, the
    /// file stays mapped.
    ///
    /// C: `mmap`, `mremap`. The replacement takes one page of memory, and another one for each page that is written from
    /// now on.
    package func detach(leaving value: UInt64, at index: Int) {
        precondition(index >= 0 && index < byteCount / 8, "outside of the mapping")
        let (count, flags) = (byteCount, MAP_PRIVATE | MAP_ANONYMOUS)
        let address =
            SystemCall.map.isRefused
            ? -1 : unsafe Int(bitPattern: mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0))
        guard address != -1, let pages = unsafe UnsafeMutableRawPointer(bitPattern: address) else { return }
        unsafe pages.storeBytes(of: value, toByteOffset: index * 8, as: UInt64.self)
        // The replacement is atomic: a thread that accesses a page in the meantime waits for the kernel.
        if unsafe cplatform_replace_pages(pages, count, base) != 0 { unsafe munmap(pages, count) }
    }

    deinit {
        // Fails only for an address that is not mapped.
        let failed = unsafe munmap(base, byteCount) == -1
        precondition(!failed, "the pages were not mapped")
    }
}

/// A view of words that are shared with other threads or processes.
///
/// Copying the view changes no reference count, so the holder must keep the memory mapped. A load is lock-free on every
/// processor, and one `mov` on x86-64.
@safe
@usableFromInline
package struct MappedWords: Sendable {
    @usableFromInline nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>
    @usableFromInline package let count: Int

    /// Creates a view of `count` words at `address`, which must be aligned to 8 bytes and stay valid while the view is used.
    @unsafe
    @inlinable
    package init(at address: UnsafeMutableRawPointer, count: Int) {
        unsafe words = address.assumingMemoryBound(to: Atomic<UInt64>.self)
        self.count = count
    }

    /// The address of the words, which identifies a mapping and can recreate this view; never 0.
    @inlinable package var address: UInt { unsafe UInt(bitPattern: words) }

    /// Recreates the view for an ``address`` that is still mapped; nil for 0.
    @unsafe
    @inlinable
    package init?(address: UInt, count: Int) {
        guard let base = unsafe UnsafeMutableRawPointer(bitPattern: address) else { return nil }
        unsafe self.init(at: base, count: count)
    }

    /// Returns a pointer to a word, for an access that changes it or not.
    @unsafe
    @inlinable
    func word(_ index: Int, toChange isChange: Bool = false) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(index >= 0 && index < count, "outside of the mapping")
        #if DEBUG || SIMULATED
            cplatform_before_word(isChange)
        #endif
        return unsafe words + index
    }

    /// Returns the word, with acquire ordering.
    @inlinable
    package func load(_ index: Int) -> UInt64 {
        unsafe word(index).pointee.load(ordering: .acquiring)
    }

    /// Returns the index of the first word in `range` that has a bit of `mask`; nil if none has.
    ///
    /// Each word is loaded like ``load(_:)``.
    package func firstIndex(in range: Range<Int>, havingAnyOf mask: UInt64) -> Int? {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the mapping")
        #if DEBUG || SIMULATED
            cplatform_before_word(false)
        #endif
        let place = unsafe UnsafeRawPointer(words + range.lowerBound).assumingMemoryBound(to: UInt64.self)
        let index = unsafe cplatform_first_word(place, range.count, mask)
        return index < range.count ? range.lowerBound + index : nil
    }

    /// Prefetches the word's cache line without waiting for it.
    package func prefetch(_ index: Int) {
        unsafe cplatform_prefetch(word(index))
    }

    /// Stores the word, with release ordering.
    package func store(_ value: UInt64, at index: Int) {
        unsafe word(index, toChange: true).pointee.store(value, ordering: .releasing)
    }

    /// Stores `value` in all words of `range`, with relaxed ordering.
    package func store(_ value: UInt64, in range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the mapping")
        #if DEBUG || SIMULATED
            cplatform_before_word(true)
        #endif
        let place = unsafe UnsafeMutableRawPointer(words + range.lowerBound)
            .assumingMemoryBound(to: UInt64.self)
        unsafe cplatform_store_words(place, range.count, value)
    }

    /// Adds to the word atomically, with wraparound and sequential consistency, and returns the previous value.
    @discardableResult
    package func add(_ amount: UInt64, at index: Int) -> UInt64 {
        unsafe word(index, toChange: true).pointee.wrappingAdd(amount, ordering: .sequentiallyConsistent)
            .oldValue
    }

    /// Adds to a word that is only a counter, atomically, with wraparound and relaxed ordering.
    @inlinable
    package func count(_ amount: UInt64, at index: Int) {
        unsafe word(index).pointee.wrappingAdd(amount, ordering: .relaxed)
    }

    /// Sets the bits of `mask` atomically, with sequential consistency.
    package func setBits(_ mask: UInt64, at index: Int) {
        unsafe word(index, toChange: true).pointee.bitwiseOr(mask, ordering: .sequentiallyConsistent)
    }

    /// Replaces the word if it is `expected`; returns false if it is not.
    package func replace(_ expected: UInt64, by value: UInt64, at index: Int) -> Bool {
        unsafe word(index, toChange: true).pointee.compareExchange(
            expected: expected,
            desired: value,
            ordering: .sequentiallyConsistent
        ).exchanged
    }
}

/// One of several shared words.
package struct MappedWord: Sendable {
    private let words: MappedWords
    private let index: Int

    package init(_ index: Int, of words: MappedWords) {
        self.words = words
        self.index = index
    }

    /// The word, accessed like ``MappedWords/load(_:)`` and ``MappedWords/store(_:at:)``.
    package var value: UInt64 {
        get { words.load(index) }
        nonmutating set { words.store(newValue, at: index) }
    }

    /// Replaces the word if it is `expected`; returns false if it is not.
    @discardableResult
    package func replace(_ expected: UInt64, by value: UInt64) -> Bool {
        words.replace(expected, by: value, at: index)
    }
}

/// Words in private memory of this process, initially 0, aligned to a cache line.
@safe
package final class WordBlock: Sendable {
    /// The words, valid for the lifetime of this object.
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
