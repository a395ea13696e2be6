// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// A description of a process to start.
package struct SpawnRequest: Sendable {
    /// The source or destination of one of the process's three standard streams.
    package enum Stream: Sendable {
        /// This process's stream.
        case inherited
        /// `/dev/null`; if it is missing, as in some sandboxes, input comes from an empty pipe.
        case null
        case descriptor(Int32)
    }

    /// The program and its arguments: bytes without NUL.
    package let words: [[UInt8]]
    /// Variables that the child gets in addition to this process's environment, or instead of variables of the same name.
    package var environment: [String: String] = [:]
    package var input = Stream.inherited
    package var output = Stream.inherited
    package var errors = Stream.inherited
    /// Whether a program name without a slash is looked up in `$PATH`.
    package var searchesPath = false
    /// Whether the process leads its own session, detached from this one's terminal.
    package var isNewSession = false

    /// Words that represent paths of other bytes than UTF-8 stand for these bytes (``Swift/String/pathBytes``).
    package init(_ words: [String]) {
        self.init(bytes: words.map(\.pathBytes))
    }

    package init(bytes words: [[UInt8]]) {
        self.words = words
    }

    /// Starts the process.
    ///
    /// The caller must wait for the process, as ``SpawnedProcess`` does; after this process has ended, init(8) waits for
    /// it.
    ///
    /// C: `posix_spawn`, `posix_spawnp`.
    ///
    /// - Throws: An error also if the program can't be executed; that is never reported as an exit status of the child.
    @discardableResult
    package func start() throws(Errno) -> Int32 {
        let words = CStringList(words)
        let variables = CStringList(CurrentProcess.variables(adding: environment))
        guard let program = unsafe words.base.pointee else { throw .invalidArgument }
        // The two lists of posix_spawn are opaque; their functions can only fail if memory is exhausted.
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        // Stays open until the process has its own copy.
        let emptyInput = hasNoNullInput ? try Pipe().closingWriting() : nil
        let emptyNumber: CInt? =
            switch emptyInput {
            case .some(let file): file.rawValue
            case .none: nil
            }
        for (stream, number, mode) in streams {
            switch stream {
            case .inherited: break
            case .null where number == STDIN_FILENO && emptyNumber != nil:
                unsafe posix_spawn_file_actions_adddup2(&actions, emptyNumber ?? -1, number)
            case .null: unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", mode, 0)
            case .descriptor(let other): unsafe posix_spawn_file_actions_adddup2(&actions, other, number)
            }
        }

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var blocked = sigset_t([])
        unsafe posix_spawnattr_setsigmask(&attributes, &blocked)
        var reset = sigset_t([.brokenPipe, .fileSizeLimit])
        unsafe posix_spawnattr_setsigdefault(&attributes, &reset)
        let session = isNewSession ? cplatform_POSIX_SPAWN_SETSID : 0
        let flags = Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | session
        unsafe posix_spawnattr_setflags(&attributes, flags)

        let spawn = unsafe searchesPath ? posix_spawnp : posix_spawn
        var identifier: pid_t = 0
        try systemCallReturningError(.spawn) {
            unsafe spawn(&identifier, program, &actions, &attributes, words.base, variables.base)
        }
        return identifier
    }

    /// Replaces this process by the program.
    ///
    /// That needs no other process, and no free descriptor unless `/dev/null` is missing.
    ///
    /// Streams must be inherited or null; `environment` and `isNewSession` are ignored.
    ///
    /// C: `execv`, `execvp`.
    ///
    /// - Returns: The error that prevented the replacement.
    package func replaceProcess() -> Errno {
        let words = CStringList(words)
        guard !SystemCall.spawn.isRefused else { return .current }
        guard let program = unsafe words.base.pointee else { return .invalidArgument }
        for (stream, number, mode) in streams {
            guard case .null = stream else { continue }
            if number == STDIN_FILENO, hasNoNullInput {
                do throws(Errno) {
                    let empty = try Pipe().closingWriting()
                    if dup2(empty.rawValue, number) == -1 { return .current }
                } catch {
                    return error
                }
                continue
            }
            // open(2) takes the lowest free number, which is then this one.
            _ = Glibc.close(number)
            if unsafe open("/dev/null", mode) == -1 { return .current }
        }
        for number in [SIGPIPE, SIGXFSZ] { _ = Glibc.signal(number, SIG_DFL) }
        _ = unsafe searchesPath ? execvp(program, words.base) : execv(program, words.base)
        return .current
    }

    /// C: `access`.
    private var hasNoNullInput: Bool {
        guard case .null = input else { return false }
        return !CurrentProcess.isThere("/dev/null")
    }

    private var streams: [(stream: Stream, number: CInt, mode: CInt)] {
        [
            (input, STDIN_FILENO, O_RDONLY), (output, STDOUT_FILENO, O_WRONLY),
            (errors, STDERR_FILENO, O_WRONLY),
        ]
    }
}

/// A child process.
///
/// The process inherits its standard streams and no other descriptor: all others are close-on-exec. Destroying the value
/// without waiting kills the process, so that no child outlives its owner or stays a zombie.
package struct SpawnedProcess: ~Copyable, Sendable {
    /// How a process ended.
    package enum End: Sendable, Equatable {
        case exited(Int32)
        case killed(Signal)
    }

    package let identifier: Int32
    private var end: End?

    /// Starts the process.
    ///
    /// C: `posix_spawn`.
    ///
    /// In the child no signal is blocked, and SIGPIPE and SIGXFSZ have their default effect. Any other signal that this
    /// process ignores stays ignored.
    ///
    /// - Throws: An error also if the program can't be executed: ENOENT, EACCES, ENOEXEC, execve(2).
    package init(_ request: SpawnRequest) throws(Errno) {
        identifier = try request.start()
    }

    deinit {
        if end != nil { return }
        // No other code waits for the process, so it still exists; an error could not be reported anyway.
        _ = Glibc.kill(identifier, SIGKILL)
        _ = waitpid(identifier, nil, 0)
    }

    /// Sends a signal; does nothing once the process has been waited for, because its PID may have been reused.
    ///
    /// C: `kill`.
    package func send(_ signal: Signal) {
        if end == nil { _ = Glibc.kill(identifier, signal.rawValue) }
    }

    /// Waits until the process has ended and returns how it ended; a later call returns at once.
    ///
    /// C: `waitpid`.
    package mutating func wait() throws(Errno) -> End {
        while true {
            if let end = try wait(options: 0) { return end }
        }
    }

    /// Returns how the process ended; nil while it runs.
    ///
    /// C: `waitpid`.
    package mutating func endIfAny() throws(Errno) -> End? {
        try wait(options: WNOHANG)
    }

    private mutating func wait(options: CInt) throws(Errno) -> End? {
        if let end { return end }
        var status: CInt = 0
        let found = try systemCall(.wait) { unsafe waitpid(identifier, &status, options) }
        if found == 0 { return nil }
        // As encoded by waitpid(2): the signal in the low bits, the status above.
        let signal = status & 0x7f
        end = signal != 0 ? .killed(Signal(rawValue: signal)) : .exited(status >> 8 & 0xff)
        return end
    }
}

extension CurrentProcess {
    /// Returns the environment with some variables added or replaced, copied byte by byte because it need not be UTF-8.
    fileprivate static func variables(adding added: [String: String]) -> [[UInt8]] {
        var variables = added.map { Array("\($0.key)=\($0.value)".utf8) }
        var entry = unsafe environ
        while let text = unsafe entry.pointee {
            let variable = unsafe [UInt8](cString: text)
            let name = String(decoding: variable.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
            if added[name] == nil { variables.append(variable) }
            unsafe entry += 1
        }
        return variables
    }
}
