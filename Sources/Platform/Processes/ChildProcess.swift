// SPDX-License-Identifier: Apache-2.0

/// A child process with a pipe to its standard input and a pipe from its standard output.
///
/// It inherits these two, standard error and no other descriptor: all others are close-on-exec. Destroying the value without
/// waiting kills the process, so that no child outlives its owner or stays a zombie.
package struct ChildProcess: ~Copyable, Sendable {
    package typealias End = SpawnedProcess.End

    /// The reading end of the process's standard output.
    package let output: FileDescriptor
    private var input: FileDescriptor?
    private var process: SpawnedProcess

    /// Starts `executable`, a path, with the given arguments after its name.
    ///
    /// C: `pipe2`, `posix_spawn`.
    ///
    /// Signals that this process blocks or ignores are neither blocked nor ignored in the child.
    ///
    /// - Parameters:
    ///   - environment: Variables to add to this process's environment, or to replace in it.
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

    /// Closes the process's standard input, so that it reads the end of file.
    package mutating func closeInput() {
        input = nil
    }

    /// Sends a signal; does nothing after the process has been waited for, as its number may have been reused.
    ///
    /// C: `kill`.
    package func send(_ signal: Signal) {
        process.send(signal)
    }

    /// Waits until the process has ended and returns how; a later call returns at once.
    ///
    /// C: `waitpid`.
    package mutating func wait() throws(Errno) -> End {
        try process.wait()
    }
}
