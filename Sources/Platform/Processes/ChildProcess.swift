// SPDX-License-Identifier: Apache-2.0

/// A process that this one has started, with a pipe to its standard input and one from its output.
///
/// It inherits these two, standard error and nothing else: every other descriptor is close-on-exec. Whoever
/// lets go of it without having waited kills it, so that no child outlives its owner or stays a zombie.
package struct ChildProcess: ~Copyable, Sendable {
    package typealias End = SpawnedProcess.End

    /// What the process writes to its standard output.
    package let output: FileDescriptor
    private var input: FileDescriptor?
    private var process: SpawnedProcess

    /// Starts `executable`, a path, with these arguments after its name.
    ///
    /// C: `pipe2`, `posix_spawn`.
    ///
    /// In the child no signal is blocked or ignored because this process does so.
    ///
    /// - Parameters:
    ///   - environment: variables to add to this process's own, or to replace there.
    ///   - searchesPath: whether a program without a slash is looked for in `$PATH`.
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
    /// - Throws: ``Errno/brokenPipe`` where nobody reads it any more, provided that this process ignores
    ///   SIGPIPE; see ``Signal/ignore()``.
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
        process.send(signal)
    }

    /// Waits until the process has ended and says how; at once when asked again.
    ///
    /// C: `waitpid`.
    package mutating func wait() throws(Errno) -> End {
        try process.wait()
    }
}
