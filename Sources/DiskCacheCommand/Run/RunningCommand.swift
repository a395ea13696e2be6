// SPDX-License-Identifier: Apache-2.0

import Platform

/// A running command: passes its output on and records it, passes on signals, and tells how it ended.
final class RunningCommand {
    /// How a run went.
    struct Outcome {
        let end: SpawnedProcess.End
        /// Whether everything that the command wrote was read and passed on, and nobody asked it to end early.
        let isComplete: Bool
        /// Why the output could not be written, if that should be reported.
        let outputFailure: Errno?
    }

    /// The signals that ask a process to end or to do something.
    ///
    /// Those by which a terminal stops a process work by themselves.
    static let passedOn: [Signal] = [.hangup, .interrupt, .quit, .terminate, .user1, .user2]

    private var process: SpawnedProcess
    private var output: FileDescriptor?
    private var errors: FileDescriptor?
    /// Whether its output is only recorded.
    private let isSilent: Bool
    private var isInterrupted = false
    /// Nobody reads the output, and the command has ended.
    private var isAbandoned = false
    private var isComplete = true
    private var outputFailure: Errno?

    /// The signals that ``follow(_:_:)`` must notice.
    static let heard = passedOn + [.child]

    /// Starts it with an empty standard input: its output is for all callers, whatever their own input is.
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

    /// Continues until the command has ended and nobody has its output open any more.
    ///
    /// If it was asked to end and has ended, processes that it left running are not waited for.
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
    /// How often to read what an ended command has left in its pipes, which others may still write to.
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
            // What a key of the terminal sends, the command has got itself: it is in the same group. Of a
            // terminal that goes away the kernel tells the leader of the session only.
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
            // The reader of our output has gone. The command learns that as it would without us, by SIGPIPE.
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
