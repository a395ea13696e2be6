// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct RunRecordingTests {
    /// Returns the total length of the open files in `directory` that have no name.
    private static func unnamedBytes(in directory: String) throws -> Int {
        let descriptors = "/proc/self/fd"
        return try FileManager.default.contentsOfDirectory(atPath: descriptors).reduce(0) { sum, name in
            let path = descriptors + "/" + name
            // Other threads close descriptors.
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path),
                target.hasPrefix(directory), target.hasSuffix(" (deleted)")
            else { return sum }
            return sum + Int(try FileStatus.of(path).size)
        }
    }

    @Test func `output that the limits do not allow takes no space, and the result is not stored`() throws {
        let directory = try TemporaryDirectory()
        let cache = try SharedCache(at: directory.path + "/cache")
        try cache.directory.updateLimits { $0.maximumValueSize = .mebibytes(1) }
        var recorder = Recorder(in: cache)
        let piece = [UInt8](repeating: 1, count: 64 << 10)
        for _ in 0..<15 { recorder.add(piece, of: .output) }
        #expect(try Self.unnamedBytes(in: directory.path) > 256 << 10)
        for _ in 0..<3 { recorder.add(piece, of: .output) }
        #expect(try Self.unnamedBytes(in: directory.path) == 0)
        var code: CacheError.Code?
        do {
            try recorder.store(0, forKey: "k", options: PutOptions())
        } catch {
            code = (error as? CacheError)?.code
        }
        #expect(code == .valueTooLarge)
        #expect(try !cache.contains(forKey: "k"))
    }

    typealias Piece = (stream: OutputStream, bytes: [UInt8])

    static let pieces: [Piece] = [
        (.output, Array("out\n".utf8)), (.errors, [0, 255, 10]),
        (.output, SeededGenerator.bytes(300, seed: 1)),
        (.errors, Array("diskcache run 1\n".utf8)), (.errors, [0, 0, 0, 0, 0]),
    ]

    static func recording(_ pieces: [Piece] = pieces, status: Int32 = 3) -> [UInt8] {
        RecordingFormat.header
            + pieces.flatMap { RecordingFormat.frame(of: $0.stream, count: $0.bytes.count) + $0.bytes }
            + RecordingFormat.end(status: status)
    }

    /// Returns the parsed pieces, with adjacent pieces of the same stream joined.
    static func parse(_ chunks: [[UInt8]]) -> (pieces: [Piece], status: Int32?) {
        var parser = RecordingParser()
        var pieces: [Piece] = []
        for chunk in chunks {
            parser.consume(chunk.span) { stream, bytes in
                let bytes = bytes.indices.map { bytes[$0] }
                if pieces.last?.stream == stream {
                    pieces[pieces.count - 1].bytes += bytes
                } else {
                    pieces.append((stream, bytes))
                }
            }
        }
        return (pieces, parser.status)
    }

    static func expectAll(_ found: (pieces: [Piece], status: Int32?)) {
        #expect(found.status == 3)
        #expect(found.pieces.map(\.stream) == [.output, .errors, .output, .errors])
        let joined = pieces.dropLast(2).map(\.bytes) + [pieces[3].bytes + pieces[4].bytes]
        #expect(found.pieces.map(\.bytes) == joined)
    }

    @Test func `a recording is parsed alike wherever it is split`() {
        let bytes = Self.recording()
        for place in 0...bytes.count {
            Self.expectAll(Self.parse([Array(bytes[..<place]), Array(bytes[place...])]))
        }
        Self.expectAll(Self.parse(bytes.map { [$0] }))
    }

    @Test func `the format is as documented, byte by byte`() {
        let bytes = Self.recording([(.output, Array("ab\n".utf8)), (.errors, Array("x\n".utf8))], status: 7)
        let expected =
            Array("diskcache run 1\n".utf8) + [1, 0, 0, 0, 3] + Array("ab\n".utf8) + [2, 0, 0, 0, 2]
            + Array("x\n".utf8) + [0, 0, 0, 0, 7]
        #expect(bytes == expected)
    }

    @Test func `a recording without output has a status`() {
        #expect(Self.parse([Self.recording([], status: 255)]).status == 255)
        #expect(Self.parse([Self.recording([], status: 0)]).status == 0)
    }

    @Test func `a truncated recording has no status`() {
        let bytes = Self.recording()
        for length in 0..<bytes.count {
            #expect(Self.parse([Array(bytes[..<length])]).status == nil, "\(length)")
        }
    }

    @Test(arguments: [
        recording() + [0], recording() + recording(), Array("diskcache run 2\n".utf8),
        Array("x".utf8) + recording(), RecordingFormat.header + [3, 0, 0, 0, 0],
        RecordingFormat.header + [0, 0, 0, 1, 0], RecordingFormat.header + [0, 255, 255, 255, 255],
    ])
    func `malformed data and other format versions have no status`(bytes: [UInt8]) {
        #expect(Self.parse([bytes]).status == nil)
        #expect(Self.parse(bytes.map { [$0] }).status == nil)
    }

    @Test func `a damaged byte anywhere in the header is detected`() {
        for place in RecordingFormat.header.indices {
            var bytes = Self.recording()
            bytes[place] ^= 1
            #expect(Self.parse([bytes]).status == nil)
        }
    }
}
