// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The files below a directory as values: their paths below it are the keys.
///
/// They are read once, before anything is timed, so they must not change while a benchmark runs: every
/// process reads them for itself.
struct Corpus: BenchValues {
    /// Bytes that are loaded at most, the files in the order of their paths: every process holds all of
    /// them.
    static let limit: Int64 = 256 << 20

    private let files: [(path: String, data: Data)]
    /// What was left out, and why, for the user.
    let notes: [String]

    /// - Throws: ``Failure`` where there is no file that can be read.
    init(below directory: String, limit: Int64 = Corpus.limit) throws(Failure) {
        let paths: [String]
        do {
            paths = try FileManager.default.subpathsOfDirectory(atPath: directory).sorted()
        } catch {
            throw Failure(.inputOutput, "read the corpus \(directory): it is no directory that can be read")
        }
        var files: [(path: String, data: Data)] = []
        var left = LeftOut()
        var rest = limit
        for path in paths {
            guard let data = Self.read(directory + "/" + path, limit: rest, &left) else { continue }
            rest -= Int64(data.count)
            files.append((path, data))
        }
        guard !files.isEmpty else {
            throw Failure(
                .inputOutput,
                "read the corpus \(directory): no file there can be read: choose another"
            )
        }
        self.files = files
        notes = [
            (left.special, "no regular files"), (left.unreadable, "not readable"),
            (left.overLimit, "past the limit of \(Quantity.text(bytes: limit))"),
        ].filter { $0.0 > 0 }.map { "corpus: \($0.0) left out: \($0.1)" }
    }

    private struct LeftOut {
        var special = 0
        var unreadable = 0
        var overLimit = 0
    }

    /// The bytes of a file; nil for a directory and for whatever is left out.
    ///
    /// Opens nothing but regular files: to open a pipe would wait for its other end.
    private static func read(_ path: String, limit: Int64, _ left: inout LeftOut) -> Data? {
        do {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let type = attributes[.type] as? FileAttributeType
            if type == .typeDirectory { return nil }
            guard type == .typeRegular else {
                left.special += 1
                return nil
            }
            if let size = attributes[.size] as? UInt, size <= limit {
                let data = try Data(contentsOf: URL(filePath: path))
                if data.count <= limit { return data }
            }
            left.overLimit += 1
        } catch {
            left.unreadable += 1
        }
        return nil
    }

    var count: Int { files.count }
    /// Length of all values together.
    var totalSize: Int64 { files.reduce(0) { $0 + Int64($1.data.count) } }

    func key(_ index: Int) -> String { files[index].path }

    func value(_ index: Int, version: Version) -> Data { files[index].data }

    func check(_ data: Data, _ index: Int) -> Verdict {
        let expected = files[index].data
        guard data.count == expected.count else {
            return .wrong(.length(data.count, expected: expected.count))
        }
        if data == expected { return .right(nil) }
        let offset = zip(data, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset
        return .wrong(.damagedBody(offset: offset ?? 0))
    }
}
