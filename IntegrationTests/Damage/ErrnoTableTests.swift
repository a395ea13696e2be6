// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of commands in a process for which one system call fails: each works or reports the reason in one message.
///
/// The cache is intact afterwards. A run tries a third of the pairs of a call and an error, each with one command; with
/// `DISKCACHE_SOAK=1` it tries all pairs with every command.
@Suite(.takesTurns) struct ErrnoTableTests {
    private static let errors: [Int32] = [
        EPERM, EACCES, ENOSYS, ENOTSUP, EINVAL, EROFS, EXDEV, EIO, EMFILE, ENOMEM,
    ]
    private static let chosen = [
        "getxattrat", "fgetxattr", "setxattrat", "fsetxattr", "openat2", "linkat", "renameat", "flock",
        "map-shared",
        "statx", "newfstatat", "fstatfs", "fallocate", "unlinkat", "utimensat", "getdents64", "mkdirat",
        "lseek", "fdatasync",
        "copy_file_range", "signalfd4", "pipe2", "poll", "wait4", "fcntl", "ioctl",
    ]
    /// The remaining calls, without those whose failure makes the loader or the runtime end any process (futex, mmap,
    /// mprotect …).
    private static let rest = [
        "clone3", "clone", "dup2", "dup3", "faccessat", "faccessat2", "fchmod", "fsync", "ftruncate",
        "getcwd", "getrandom",
        "kill", "memfd_create", "openat", "pread64", "prlimit64", "pwrite64", "readlink", "readlinkat",
        "rename",
        "rt_sigtimedwait", "sched_getaffinity", "setsid", "uname", "unlink", "waitid", "write", "writev",
    ]
    private static let commands: [[String]] = [
        ["put", "new"], ["put", "old"], ["get", "kept 0"], ["has", "kept 0"], ["rm", "old"],
        ["touch", "kept 0"],
        ["incr", "n"], ["run", "--key", "r", "--", "echo", "ran"], ["lock", "l", "--", "true"], ["ls"],
        ["info", "kept 0"], ["gc"], ["config", "set", "max-entries", "1000"], ["stats"], ["verify"],
        ["verify", "--repair"], ["doctor"], ["rm", "--prefix", "new"], ["serve"],
    ]

    private let tool: Tool
    private let kept = (0..<4).map { "kept \($0)" }

    init() throws {
        tool = try Tool()
    }

    @Test func `whichever system call fails, a command works or reports why, and the cache stays intact`()
        throws
    {
        let cache = try tool.cache()
        for key in kept { try cache.put(Data("value of \(key)".utf8), forKey: key) }
        try cache.put(Data("one".utf8), forKey: "old")
        var turn = 0
        let share = Int.random(in: 0..<3)
        for call in Self.chosen + (isSoak ? Self.rest : []) {
            for errno in Self.errors {
                turn += 1
                guard isSoak || turn % 3 == share else { continue }
                let commands = isSoak ? Self.commands : [Self.commands[turn % Self.commands.count]]
                for command in commands {
                    try expectHonest(command, call, errno)
                    try expectWhole(cache, after: "\(command) with \(call) \(errno)")
                }
            }
        }
    }

    private func expectHonest(_ command: [String], _ call: String, _ errno: Int32) throws {
        let refusal = Refusal(errno: errno, name: "\(errno)")
        let input = command == ["serve"] ? "{\"op\":\"get\",\"key\":\"kept 0\"}\n" : "value"
        let run = try tool.run(refusing: [call], refusal, command, input: input)
        let what = "\(command) with \(call) \(errno): \(run.status) \(run.error)"
        // The program was not started, so this is not its failure.
        if run.error.contains("error while loading shared libraries") { return }
        #expect(![99, 98].contains(run.status), "\(what)")
        // No signal, no timeout, no internal error; 126 means that `run` can't start the command.
        #expect(run.status < (command[0] == "run" ? 127 : 126) && run.status != 70, "\(what)")
        let lines = run.error.split(separator: "\n").filter { $0.hasPrefix("diskcache:") }
        // `run` also reports why a result is not shared.
        #expect(lines.count <= (command[0] == "run" ? 2 : 1), "\(what)")
        let isSilent = ["write", "writev"].contains(call) || [0, 1].contains(run.status)
        #expect(isSilent || lines.count > 0 || !run.error.isEmpty || !run.output.isEmpty, "\(what)")
        if command == ["doctor"] { #expect(!run.error.contains("run `diskcache doctor`"), "\(what)") }
    }

    private func expectWhole(_ cache: SharedCache, after what: String) throws {
        for _ in 0..<2 {
            cache.memory.removeAll()
            for key in kept {
                let value = try cache.get(forKey: key)
                #expect(value?.value == Data("value of \(key)".utf8), "\(key) after \(what)")
            }
            let report = try cache.directory.verify()
            #expect(report.isClean, "after \(what): \(report)")
            _ = try cache.directory.collect()
        }
    }
}
