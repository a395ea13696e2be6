// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct OutputFileTests {
    let directory: TemporaryDirectory
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/file"
    }

    private func write(_ text: String, to path: String) throws {
        try OutputFile.write(path) { (output) throws(Errno) in
            try output.writeAll(Array(text.utf8).span)
        }
    }

    private func contents(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a file is made, or replaced whole, and left alone when writing fails`() throws {
        try write("old", to: path)
        #expect(contents(path) == "old")
        #expect(throws: Errno.inputOutput) {
            try OutputFile.write(path) { (output) throws(Errno) in
                try output.writeAll(Array("half".utf8).span)
                throw .inputOutput
            }
        }
        #expect(contents(path) == "old")
        try write("new", to: path)
        #expect(contents(path) == "new")
        #expect(directory.files() == ["file"])
    }

    @Test func `a link stays, and the file that it leads to is replaced, there or not`() throws {
        let link = directory.path + "/link"
        #expect(symlink("file", link) == 0)
        try write("first", to: link)
        #expect(contents(path) == "first")
        try write("second", to: link)
        #expect(contents(path) == "second")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "file")
        let circle = directory.path + "/circle"
        #expect(symlink("circle", circle) == 0)
        #expect(throws: Errno.tooManyLinks) { try write("x", to: circle) }
    }

    @Test func `another name of an open file is written to, and no file takes its place`() throws {
        makeFile(path)
        let file = try FileDescriptor(opening: path, .writeOnly)
        let link = directory.path + "/out"
        #expect(symlink("/proc/self/fd/\(file.rawValue)", link) == 0)
        try file.writeAll(Array("before and ".utf8).span)
        try write("through", to: link)
        #expect(contents(path) == "before and through")
        let target = try FileManager.default.destinationOfSymbolicLink(atPath: link)
        #expect(target.hasPrefix("/proc/self/fd/"))
        try write("nowhere", to: "/dev/null")
    }

    @Test func `a file that is replaced keeps its permissions`() throws {
        makeFile(path)
        #expect(chmod(path, 0o640) == 0)
        try write("x", to: path)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o640)
    }

    @Test func `a name of any length that there can be`() throws {
        let long = directory.path + "/" + String(repeating: "n", count: 255)
        try write("x", to: long)
        #expect(contents(long) == "x")
        #expect(directory.files().count == 1)
    }
}
