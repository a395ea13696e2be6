// SPDX-License-Identifier: Apache-2.0

import Platform

/// A running command: forwards and records its output, forwards signals to it, and returns how it ended.
final class RunningCommand {
    /// The outcome of a run.
    struct Outcome {
        let end: SpawnedProcess.End
        /// Whether all output of the command was read and forwarded, and it was not asked to end early.
        let isComplete: Bool
        /// Why the output could not be written, if that should be reported.
        let outputFailure: Errno?
    }

    /// The signals that ask a process to end or to perform an action.
    ///
    /// The signals by which a terminal stops a process need no forwarding.
    static let passedOn: [Signal] = [.hangup, .interrupt, .quit, .terminate, .user1, .user2]

    private var process: SpawnedProcess
    private var output: FileDescriptor?
    private var errors: FileDescriptor?
    /// Whether the output is only recorded.
    private let isSilent: Bool
    private var isInterrupted = false
    /// Whether the output has no reader, and the command has ended.
    private var isAbandoned = false
    private var isComplete = true
    private var outputFailure: Errno?

    /// The signals that ``follow(_:_:)`` must notice.
    static let heard = passedOn + [.child]

    /// Starts the command with an empty standard input: its output is for all callers, whatever their own input is.
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

    /// Forwards and records output until the command has ended and no process has its output open.
    ///
    /// If the command was asked to end and has ended, processes that it left running are not waited for.
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
            // SIGCHLD ends the wait.
            _ = try Readiness.wait(for: [signals.descriptor], limit: Self.longestWait)
            passOn(signals)
        }
    }

    private static let longestWait: Duration = .seconds(3600)
    /// How many times to read the remaining output of an ended command, to whose pipes other processes may still write.
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
            // The command has received a terminal key's signal itself, as it is in the same group. When a terminal
            // disappears, the kernel signals only the session leader.
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
            // The output has no reader any more. The command receives SIGPIPE, as it would without this process.
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
