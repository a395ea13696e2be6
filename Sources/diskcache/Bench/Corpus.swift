// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

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
        var left = LeftOut()
        var files: [(path: String, data: Data)] = []
        var rest = limit
        for path in try Self.regularFiles(below: directory, &left).sorted() {
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
            (left.misnamed, "the name is not UTF-8"),
            (left.overLimit, "past the limit of \(Quantity.text(bytes: limit))"),
        ].filter { $0.0 > 0 }.map { "corpus: \($0.0) left out: \($0.1)" }
    }

    private struct LeftOut {
        var special = 0
        var unreadable = 0
        var misnamed = 0
        var overLimit = 0
    }

    /// Paths of the regular files below a directory, relative to it, in no order.
    ///
    /// A directory below it that can't be read is left out.
    private static func regularFiles(
        below directory: String,
        _ left: inout LeftOut
    ) throws(Failure) -> [String] {
        var files: [String] = []
        // Directories to look into, each with the slash that its names follow.
        var pending = [""]
        while let part = pending.popLast() {
            let names: [String]
            do throws(Errno) {
                names = try Directory(opening: part.isEmpty ? directory : directory + "/" + part).names()
            } catch {
                if part.isEmpty {
                    throw Failure(
                        .inputOutput,
                        "read the corpus \(directory): \(error): choose a directory that can be read"
                    )
                }
                left.unreadable += 1
                continue
            }
            for name in names {
                switch kind(of: directory + "/" + part + name) {
                case .directory: pending.append(part + name + "/")
                case .regular: files.append(part + name)
                // What stands for bytes that are not UTF-8, and so leads nowhere.
                case nil where name.unicodeScalars.contains("\u{FFFD}"): left.misnamed += 1
                case nil: left.unreadable += 1
                case .symbolicLink, .other: left.special += 1
                }
            }
        }
        return files
    }

    /// What a path names, links not followed; nil where that can't be found out.
    private static func kind(of path: String) -> FileStatus.Kind? {
        do throws(Errno) {
            return try FileStatus.ofLink(path).kind
        } catch {
            return nil
        }
    }

    /// The bytes of a regular file; nil where it is left out.
    ///
    /// To open anything else might wait for ever, as a pipe does for its other end.
    private static func read(_ path: String, limit: Int64, _ left: inout LeftOut) -> Data? {
        do throws(Errno) {
            if try FileStatus.ofLink(path).size <= limit {
                let data = try FileDescriptor(opening: path, .readOnly).readToEnd()
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
