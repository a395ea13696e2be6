// SPDX-License-Identifier: Apache-2.0

import Platform

/// A running command, whose output is recorded and forwarded, and to which signals are forwarded.
final class RunningCommand {
    /// The outcome of a run.
    struct Outcome {
        let end: SpawnedProcess.End
        /// Whether all output was read and forwarded, and no signal asked the command to end early.
        let isComplete: Bool
        /// Why the output could not be written; nil if that succeeded, or if the output has no reader.
        let outputFailure: Errno?
    }

    /// The signals to forward: those that ask a process to end or to do something.
    ///
    /// Signals by which a terminal stops a process reach the command without help.
    static let passedOn: [Signal] = [.hangup, .interrupt, .quit, .terminate, .user1, .user2]

    private var process: SpawnedProcess
    private var output: FileDescriptor?
    private var errors: FileDescriptor?
    /// Whether the output is only recorded, and not forwarded.
    private let isSilent: Bool
    private var isInterrupted = false
    /// Whether the rest of the output is dropped, because nothing reads it and the command has ended.
    private var isAbandoned = false
    private var isComplete = true
    private var outputFailure: Errno?

    /// The signals that must interrupt the waits of ``follow(_:_:)``.
    static let heard = passedOn + [.child]

    /// Starts the command with an empty standard input, because its output is shared by callers with different inputs.
    init(_ words: [[UInt8]], isSilent: Bool) throws(Errno) {
        let out = try Pipe()
        let err = try Pipe()
        var request = SpawnRequest(bytes: words)
        request.input = .null
        request.output = .descriptor(out.writing.rawValue)
        request.errors = .descriptor(err.writing.rawValue)
        request.searchesPath = true
        process = try SpawnedProcess(request)
        output = out.closingWriting()
        errors = err.closingWriting()
        self.isSilent = isSilent
    }

    /// Forwards and records output until the command has ended and no process holds its output open.
    ///
    /// If a signal asked the command to end, processes that the command leaves behind are not waited for.
    func follow(
        _ signals: borrowing HeldSignals,
        _ record: (OutputStream, [UInt8]) -> Void
    ) throws(Errno) -> Outcome {
        var roundsLeft = Self.lastRounds
        while !openStreams.isEmpty {
            let isLeft = try hasEndedAsAsked()
            if isLeft {
                roundsLeft -= 1
                if roundsLeft < 0 || isAbandoned { break }
            }
            let sources = openStreams
            let ready = try Readiness.wait(
                for: sources.map(\.descriptor) + [signals.descriptor],
                limit: isLeft ? .zero : Self.longestWait
            )
            if ready.contains(signals.descriptor) { passOn(signals) }
            let readable = sources.filter { ready.contains($0.descriptor) }
            if isLeft, readable.isEmpty { break }
            for source in readable { try read(source.stream, signals, record) }
        }
        while true {
            if let end = try process.endIfAny() {
                let isWhole = isComplete && !isInterrupted && openStreams.isEmpty
                return Outcome(end: end, isComplete: isWhole, outputFailure: outputFailure)
            }
            // SIGCHLD interrupts the wait.
            _ = try Readiness.wait(for: [signals.descriptor], limit: Self.longestWait)
            passOn(signals)
        }
    }

    private static let longestWait: Duration = .seconds(3600)
    /// The maximum number of reads after the command has ended; other processes may continue to write to its pipes.
    private static let lastRounds = 16

    private var openStreams: [(stream: OutputStream, descriptor: Int32)] {
        var streams: [(stream: OutputStream, descriptor: Int32)] = []
        if let number = output?.rawValue { streams.append((.output, number)) }
        if let number = errors?.rawValue { streams.append((.errors, number)) }
        return streams
    }

    private func passOn(_ signals: borrowing HeldSignals) {
        while let received = signals.next() {
            if received.signal == .child { continue }
            if received.signal != .user1, received.signal != .user2 { isInterrupted = true }
            // A signal from a terminal key goes to the whole process group, so the command has already received it. When
            // a terminal disappears, the kernel signals only the session leader.
            if !received.isFromKernel || received.signal == .hangup { process.send(received.signal) }
        }
    }

    private func hasEndedAsAsked() throws(Errno) -> Bool {
        guard isInterrupted else { return false }
        return try process.endIfAny() != nil
    }

    private func read(
        _ stream: OutputStream,
        _ signals: borrowing HeldSignals,
        _ record: (OutputStream, [UInt8]) -> Void
    ) throws(Errno) {
        let bytes = try (stream == .output ? output?.readAvailable() : errors?.readAvailable()) ?? []
        if bytes.isEmpty { return close(stream) }
        record(stream, bytes)
        if isSilent { return }
        do throws(Errno) {
            try stream.write(
                bytes.span,
                interruption: signals.descriptor,
                isAbandoned: { () throws(Errno) in
                    passOn(signals)
                    isAbandoned = try hasEndedAsAsked()
                    return isAbandoned
                }
            )
        } catch {
            // The output has no reader. The closed pipe makes the command receive SIGPIPE, as it would without this
            // process.
            isComplete = false
            if error != .brokenPipe { outputFailure = error }
            close(stream)
        }
    }

    private func close(_ stream: OutputStream) {
        switch stream {
        case .output: output = nil
        case .errors: errors = nil
        }
    }
}
