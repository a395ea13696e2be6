// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// A process that this one has started, with a pipe to its standard input and one from its output.
///
/// It inherits these two, standard error and nothing else: every other descriptor is close-on-exec. Whoever
/// lets go of it without having waited kills it, so that no child outlives its owner or stays a zombie.
package struct ChildProcess: ~Copyable, Sendable {
    /// How a process ended.
    package enum End: Sendable, Equatable {
        case exited(Int32)
        case killed(Signal)
    }

    package let identifier: Int32
    /// What the process writes to its standard output.
    package let output: FileDescriptor
    private var input: FileDescriptor?
    private var end: End?

    /// Starts `executable`, a path, with these arguments after its name.
    ///
    /// C: `pipe2`, `posix_spawn`.
    ///
    /// In the child no signal is blocked or ignored because this process does so.
    ///
    /// - Parameter environment: variables to add to this process's own, or to replace there.
    package init(
        starting executable: String,
        _ arguments: [String],
        environment: [String: String] = [:]
    ) throws(Errno) {
        let toChild = try Pipe()
        let fromChild = try Pipe()
        let variables = CurrentProcess.variables(adding: environment)
        identifier = try unsafe [executable].appending(arguments).withCStrings { (arguments) throws(Errno) in
            try unsafe variables.withCStrings { (variables) throws(Errno) in
                try unsafe Self.spawn(
                    executable,
                    arguments,
                    variables,
                    input: toChild.reading.rawValue,
                    output: fromChild.writing.rawValue
                )
            }
        }
        input = consume toChild.writing
        output = fromChild.reading
    }

    deinit {
        if end != nil { return }
        // Nobody else waits for it, so there is such a process; and nobody to tell if there were none.
        _ = Glibc.kill(identifier, SIGKILL)
        _ = waitpid(identifier, nil, 0)
    }

    /// Writes text to the process's standard input.
    ///
    /// C: `write`.
    ///
    /// - Throws: ``Errno/brokenPipe`` where nobody reads it any more, provided that this process ignores
    ///   SIGPIPE; see ``Signal/ignoreBrokenPipes()``.
    package func send(_ text: String) throws(Errno) {
        switch input {
        case .some(let input): try input.writeAll(text.utf8Span.span)
        case nil: throw .badDescriptor
        }
    }

    /// Lets the process see the end of its standard input.
    package mutating func closeInput() {
        input = nil
    }

    /// Sends a signal; nothing once it has been waited for, as its number may be another's.
    ///
    /// C: `kill`.
    package func send(_ signal: Signal) {
        if end == nil { _ = Glibc.kill(identifier, signal.rawValue) }
    }

    /// Waits until the process has ended and says how; at once when asked again.
    ///
    /// C: `waitpid`.
    package mutating func wait() throws(Errno) -> End {
        if let end { return end }
        var status: Int32 = 0
        _ = try valueOrErrno { unsafe waitpid(identifier, &status, 0) }
        let signal = cplatform_terminating_signal(status)
        let found =
            signal != 0 ? End.killed(Signal(rawValue: signal)) : .exited(cplatform_exited_status(status))
        end = found
        return found
    }

    /// C: `posix_spawn`, whose two lists are opaque and can only fail for want of memory.
    @unsafe
    private static func spawn(
        _ executable: String,
        _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>,
        _ variables: UnsafePointer<UnsafeMutablePointer<CChar>?>,
        input: CInt,
        output: CInt
    ) throws(Errno) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigaddset(&signals, SIGPIPE)
        unsafe sigaddset(&signals, SIGXFSZ)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var identifier: pid_t = 0
        let error = unsafe posix_spawn(&identifier, executable, &actions, &attributes, arguments, variables)
        guard error == 0 else { throw Errno(rawValue: error) }
        return identifier
    }
}

/// A pipe, both ends close-on-exec from the start: a child that another thread starts must not get them.
struct Pipe: ~Copyable {
    let reading: FileDescriptor
    let writing: FileDescriptor

    init() throws(Errno) {
        var numbers: InlineArray<2, CInt> = [-1, -1]
        var span = numbers.mutableSpan
        try unsafe span.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
            try nothingOrErrno { unsafe cplatform_pipe(buffer.baseAddress) }
        }
        reading = FileDescriptor(owning: numbers[0])
        writing = FileDescriptor(owning: numbers[1])
    }
}

extension CurrentProcess {
    /// This program's own file, also where it was replaced or deleted since: proc_pid_exe(5).
    package static let executable = "/proc/self/exe"

    /// The environment with some variables added or replaced, as execve(2) takes it.
    fileprivate static func variables(adding added: [String: String]) -> [String] {
        var variables: [String] = []
        var entry = unsafe environ
        while let text = unsafe entry.pointee {
            let variable = unsafe String(cString: text)
            let name = String(variable.prefix { $0 != "=" })
            if added[name] == nil { variables.append(variable) }
            unsafe entry += 1
        }
        return variables + added.map { "\($0.key)=\($0.value)" }
    }
}

extension [String] {
    fileprivate func appending(_ others: [String]) -> [String] { self + others }

    /// Hands over the strings as a list of C strings that ends with a null pointer, which lives as long as
    /// `body` runs.
    @unsafe
    fileprivate func withCStrings<Value>(
        _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        let list = UnsafeMutableBufferPointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: count + 1)
        for (index, string) in enumerated() { unsafe list[index] = unsafe strdup(string) }
        unsafe list[count] = nil
        defer {
            for index in 0..<count { unsafe free(list[index]) }
            unsafe list.deallocate()
        }
        guard let base = list.baseAddress else { throw .outOfMemory }
        return try unsafe body(UnsafePointer(base))
    }
}
