// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@Suite(.takesTurns) struct SpawnedProcessTests {
    private func shell(_ script: String) -> SpawnRequest {
        SpawnRequest(["/bin/sh", "-c", script])
    }

    @Test
    func `output and errors go to their descriptors, and the input is empty`() throws {
        let out = try Platform.Pipe()
        let err = try Platform.Pipe()
        var request = shell("cat; echo out; echo err >&2")
        request.input = .null
        request.output = .descriptor(out.writing.rawValue)
        request.errors = .descriptor(err.writing.rawValue)
        var process = try SpawnedProcess(request)
        #expect(try process.wait() == .exited(0))
        #expect(try out.closingWriting().readToEnd() == Data("out\n".utf8))
        #expect(try err.closingWriting().readToEnd() == Data("err\n".utf8))
    }

    @Test
    func `a program is searched for in PATH only on request`() throws {
        var request = SpawnRequest(["true"])
        #expect(throws: Errno.noEntry) { _ = try SpawnedProcess(request) }
        request.searchesPath = true
        var process = try SpawnedProcess(request)
        #expect(try process.wait() == .exited(0))
    }

    @Test
    func `polling for the exit status does not wait`() throws {
        var process = try SpawnedProcess(SpawnRequest(["/bin/sleep", "1000"]))
        #expect(try process.endIfAny() == nil)
        process.send(.terminate)
        #expect(try process.wait() == .killed(.terminate))
        #expect(try process.endIfAny() == .killed(.terminate))
    }

    @Test
    func `variables are passed on byte for byte, and a given one replaces the inherited one`() throws {
        let name = "DISKCACHE_TEST_BYTES"
        var value: [CChar] = [97, -1, 98, 0]
        #expect(setenv(name, &value, 1) == 0)
        defer { unsetenv(name) }
        for (added, expected) in [([:], Data([97, 0xff, 98])), ([name: "new"], Data("new".utf8))] {
            let pipe = try Platform.Pipe()
            var request = shell("printf %s \"$\(name)\"; env | grep -c '^\(name)=' >&2")
            request.environment = added
            request.output = .descriptor(pipe.writing.rawValue)
            let counts = try Platform.Pipe()
            request.errors = .descriptor(counts.writing.rawValue)
            var process = try SpawnedProcess(request)
            #expect(try process.wait() == .exited(0))
            #expect(try pipe.closingWriting().readToEnd() == expected)
            #expect(try counts.closingWriting().readToEnd() == Data("1\n".utf8))
        }
    }

    @Test
    func `a new session differs from the caller's`() throws {
        let place = try TemporaryDirectory()
        var request = shell(
            "ps -o sid= -p $$ > '\(place.path)/sid.part'; mv '\(place.path)/sid.part' '\(place.path)/sid'"
        )
        request.isNewSession = true
        request.output = .null
        try request.start()
        var session: Int32?
        waitUntil("the process has told its session") {
            let text = try? String(contentsOfFile: place.path + "/sid", encoding: .utf8)
            session = text.flatMap { Int32($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
            return session != nil
        }
        let leader = try #require(session)
        #expect(leader != getsid(0))
        // It leads its session, so its process ID is the session ID. If it were left to init(8), it would remain
        // until the tests end, and Swift Testing, which polls for any ended child, would never see those of exit tests.
        #expect(waitpid(leader, nil, 0) == leader)
    }

    @Test
    func `an unnamed file is in no listing and can be read back`() throws {
        let place = try TemporaryDirectory()
        let file = try FileDescriptor.unnamed(in: place.path)
        try file.writeAll([1, 2, 3].span)
        try file.rewind()
        #expect(try file.readToEnd() == Data([1, 2, 3]))
        #expect(place.files().isEmpty)
    }

    @Test
    func `file times, environment bytes and the working directory are exact`() throws {
        let place = try TemporaryDirectory()
        makeFile(place.path + "/f")
        #expect(throws: Errno.noEntry) { _ = try FileStatus.of(place.path + "/g") }
        let time = timespec(tv_sec: 1000, tv_nsec: 123_456_789)
        #expect(utimensat(AT_FDCWD, place.path + "/f", [time, time], 0) == 0)
        #expect(try FileStatus.of(place.path + "/f").modified.nanoseconds == 1_000_123_456_789)
        #expect(CurrentProcess.environmentBytes("DISKCACHE_TEST_UNSET") == nil)
        #expect(
            CurrentProcess.environmentBytes("PATH")
                == Array((getenv("PATH").map { String(cString: $0) } ?? "").utf8)
        )
        #expect(try CurrentProcess.workingDirectory() == Array(FileManager.default.currentDirectoryPath.utf8))
    }
}
