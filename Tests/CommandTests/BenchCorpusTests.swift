// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import diskcache

@Suite(.takesTurns) final class BenchCorpusTests {
    private let place = NSTemporaryDirectory() + "/bench-corpus-\(UUID())"
    private let manager = FileManager.default

    init() throws {
        try manager.createDirectory(atPath: place + "/deep/er", withIntermediateDirectories: true)
    }

    deinit {
        try? manager.removeItem(atPath: place)
    }

    private func write(_ text: String, to path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: place + "/" + path))
    }

    @Test
    func `files are values under their paths, in the same order for every process`() throws {
        try write("one", to: "b")
        try write("", to: "deep/er/empty")
        try write("three", to: "a")
        let corpus = try Corpus(below: place)
        #expect((0..<corpus.count).map { corpus.key($0) } == ["a", "b", "deep/er/empty"])
        #expect(corpus.value(1, version: .initial) == Data("one".utf8))
        #expect(corpus.totalSize == 8 && corpus.notes.isEmpty)
    }

    @Test
    func `bytes are held against the file's`() throws {
        try write("abcdef", to: "a")
        let corpus = try Corpus(below: place)
        #expect(corpus.check(Data("abcdef".utf8), 0) == .right(nil))
        #expect(corpus.check(Data("abcXef".utf8), 0) == .wrong(.damagedBody(offset: 3)))
        #expect(corpus.check(Data("abc".utf8), 0) == .wrong(.length(3, expected: 6)))
    }

    @Test
    func `links and pipes are left out and told of`() throws {
        try write("x", to: "a")
        try manager.createSymbolicLink(atPath: place + "/link", withDestinationPath: "a")
        #expect(mkfifo(place + "/pipe", 0o600) == 0)
        let corpus = try Corpus(below: place)
        #expect(corpus.count == 1)
        #expect(corpus.notes == ["corpus: 2 left out: no regular files"])
    }

    @Test
    func `a name that is not UTF-8 is left out and told of`() throws {
        try write("x", to: "a")
        let path = Array(place.utf8CString.dropLast()) + [0x2F, CChar(bitPattern: 0xFF), 0]
        let descriptor = open(path, O_CREAT | O_WRONLY, 0o600)
        try #require(descriptor >= 0)
        close(descriptor)
        let corpus = try Corpus(below: place)
        #expect(corpus.count == 1 && corpus.notes == ["corpus: 1 left out: the name is not UTF-8"])
    }

    @Test
    func `what does not fit the limit is left out and told of`() throws {
        try write("12345", to: "a")
        try write("123456", to: "b")
        try write("12345", to: "c")
        let corpus = try Corpus(below: place, limit: 10)
        #expect((0..<corpus.count).map { corpus.key($0) } == ["a", "c"])
        #expect(corpus.notes == ["corpus: 1 left out: past the limit of 10 B"])
    }

    @Test(arguments: ["", "/missing"])
    func `a corpus without files is an error`(path: String) {
        #expect(throws: Failure.self) { try Corpus(below: place + path) }
    }
}
