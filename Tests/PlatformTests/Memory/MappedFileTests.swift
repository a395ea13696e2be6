// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct MappedFileTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeFile(words: Int) throws -> FileDescriptor {
        let file = try FileDescriptor(opening: directory.path + "/words", [.readWrite, .create])
        try file.allocate(words * 8)
        return file
    }

    @Test func `allocating sets a file's length and blocks and keeps its content`() throws {
        let file = try FileDescriptor(opening: directory.path + "/file", [.readWrite, .create])
        try file.writeAll([UInt8](repeating: 7, count: 10).span)
        try file.allocate(100_000)
        let status = try file.status()
        #expect(status.size == 100_000)
        #expect(status.allocatedSize >= 100_000)
        try file.rewind()
        #expect(try file.readToEnd().prefix(11) == Data([7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0]))
    }

    @Test func `allocating beyond the file size limit is an error, not a signal`() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            // The parent of the tests may ignore or block the signal, and both are inherited.
            signal(SIGXFSZ, SIG_DFL)
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGXFSZ)
            #expect(pthread_sigmask(SIG_UNBLOCK, &signals, nil) == 0)
            var limit = rlimit(rlim_cur: 50_000, rlim_max: 50_000)
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let file = try FileDescriptor(opening: directory.path + "/file", [.readWrite, .create])
            #expect(throws: Errno.fileTooLarge) { try file.allocate(100_000) }
            try file.allocate(40_000)
        }
    }

    @Test func `two mappings of one file are the same memory, and outlive the descriptor`() throws {
        let file = try makeFile(words: 1024)
        let first = try MappedFile(mapping: file, wordCount: 1024, isWritable: true)
        let second = try MappedFile(mapping: file, wordCount: 1024, isWritable: false)
        file.close()
        first.words.store(5, at: 1023)
        #expect(second.words.load(1023) == 5)
        #expect(first.words.add(UInt64.max, at: 1023) == 5)
        #expect(second.words.load(1023) == 4)
        #expect(!first.words.replace(5, by: 9, at: 1023))
        #expect(first.words.replace(4, by: 9, at: 1023))
        #expect(second.words.load(1023) == 9)
        #expect(second.words.load(1022) == 0)
        #expect(first.words.address != second.words.address)
    }

    @Test func `stored words remain in the file after unmapping`() throws {
        let file = try makeFile(words: 512)
        do {
            let mapping = try MappedFile(mapping: file, wordCount: 512, isWritable: true)
            mapping.words.store(1 << 63 | 1, at: 2)
        }
        try file.rewind()
        #expect(try file.readToEnd()[16..<24] == Data([1, 0, 0, 0, 0, 0, 0, 0x80]))
    }

    @Test func `concurrent additions are not lost`() throws {
        let file = try makeFile(words: 512)
        let mapping = try MappedFile(mapping: file, wordCount: 512, isWritable: true)
        onThreads(8) { _ in
            for _ in 0..<10_000 {
                mapping.words.add(1, at: 0)
                mapping.words.count(1, at: 1)
            }
        }
        #expect(mapping.words.load(0) == 80_000)
        #expect(mapping.words.load(1) == 80_000)
    }

    @Test func `access outside of the mapping traps`() async {
        await #expect(processExitsWith: .failure) {
            WordBlock(count: 8).words.store(1, at: 8)
        }
    }

    @Test func `a block of words is zeroed and aligned to a cache line`() {
        let block = WordBlock(count: 16)
        #expect((0..<16).allSatisfy { block.words.load($0) == 0 })
        #expect(block.words.address % 64 == 0)
    }

    @Test func `each thread keeps a distinct number`() {
        let numbers = Locked<[Int]>.Box([])
        onThreads(8) { _ in
            let number = threadNumber
            #expect(number == threadNumber)
            numbers.value.withLock { $0.append(number) }
        }
        #expect(Set(numbers.value.withLock { $0 }).count == 8)
    }
}
