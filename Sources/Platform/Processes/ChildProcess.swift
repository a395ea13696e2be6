// SPDX-License-Identifier: Apache-2.0

/// A child process with a pipe to its standard input and a pipe from its standard output.
///
/// The process inherits these two pipes, standard error and no other descriptor: all others are close-on-exec. Destroying
/// the value without waiting kills the process, so that no child outlives its owner or stays a zombie.
package struct ChildProcess: ~Copyable, Sendable {
    package typealias End = SpawnedProcess.End

    /// The reading end of the process's standard output.
    package let output: FileDescriptor
    private var input: FileDescriptor?
    private var process: SpawnedProcess

    /// Starts `executable`, with the given arguments after its name.
    ///
    /// C: `pipe2`, `posix_spawn`.
    ///
    /// In the child no signal is blocked, and SIGPIPE and SIGXFSZ have their default effect. Any other signal that this
    /// process ignores stays ignored.
    ///
    /// - Parameters:
    ///   - environment: Variables that the child gets in addition to this process's environment, or instead of variables
    ///     of the same name.
    ///   - searchesPath: Whether a program name without a slash is looked up in `$PATH`.
    package init(
        starting executable: String,
        _ arguments: [String],
        environment: [String: String] = [:],
        searchesPath: Bool = false
    ) throws(Errno) {
        let toChild = try Pipe()
        let fromChild = try Pipe()
        var request = SpawnRequest([executable] + arguments)
        request.environment = environment
        request.searchesPath = searchesPath
        request.input = .descriptor(toChild.reading.rawValue)
        request.output = .descriptor(fromChild.writing.rawValue)
        process = try SpawnedProcess(request)
        input = consume toChild.writing
        output = fromChild.reading
    }

    package var identifier: Int32 { process.identifier }

    /// Writes text to the process's standard input.
    ///
    /// C: `write`.
    ///
    /// - Throws: ``Errno/brokenPipe`` if the pipe has no reader, provided that this process ignores SIGPIPE; see
    ///   ``Signal/ignore()``.
    package func send(_ text: String) throws(Errno) {
        switch input {
        case .some(let input): try input.writeAll(text.utf8Span.span)
        case nil: throw .badDescriptor
        }
    }

    /// Closes the pipe to the process's standard input, so that the process reads the end of file.
    package mutating func closeInput() {
        input = nil
    }

    /// Sends a signal; does nothing once the process has been waited for, because its PID may have been reused.
    ///
    /// C: `kill`.
    package func send(_ signal: Signal) {
        process.send(signal)
    }

    /// Waits until the process has ended and returns how it ended; a later call returns at once.
    ///
    /// C: `waitpid`.
    package mutating func wait() throws(Errno) -> End {
        try process.wait()
    }
}
