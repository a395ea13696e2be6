// SPDX-License-Identifier: Apache-2.0

import Platform

/// What worker processes are started from.
struct WorkerProgram: Sendable {
    var executable = CurrentProcess.executable
    /// Variables on top of this process's own.
    var environment: [String: String] = [:]
}

/// One of a benchmark's worker processes, as its starter sees it.
final class WorkerProcess {
    enum State {
        case starting, ready, working, finished
        /// Its output has ended.
        case ended
    }

    let plan: WorkerPlan
    private(set) var state = State.starting
    /// The latest it has said of what it has done.
    private(set) var report = WorkerReport()
    private(set) var lastHeard = ContinuousClock.now
    private(set) var isKilled = false
    private var began = ContinuousClock.now
    private var process: ChildProcess
    private var unread: [UInt8] = []

    init(_ plan: WorkerPlan, _ program: WorkerProgram = WorkerProgram()) throws {
        self.plan = plan
        process = try ChildProcess(
            starting: program.executable,
            ["bench-worker", plan.argument],
            environment: program.environment
        )
    }

    var output: Int32 { process.output.rawValue }
    var identifier: Int32 { process.identifier }
    /// Since it began to work.
    var lifetime: Duration { ContinuousClock.now - began }

    /// Lets it begin; that it may be dead already will be seen at the end of its output.
    func begin() throws(Errno) {
        do throws(Errno) {
            try process.send("go\n")
        } catch {
            if error != .brokenPipe { throw error }
        }
        process.closeInput()
        state = .working
        lastHeard = .now
        began = .now
    }

    func kill() {
        isKilled = true
        send(.kill)
    }

    func send(_ signal: Signal) {
        process.send(signal)
    }

    /// What it has said since the last time; waits if that is nothing.
    ///
    /// Its output's end makes it `ended`.
    ///
    /// A line without an end is one that its writer did not live to end, and counts as not said.
    func receive() throws(Errno) -> [WorkerMessage] {
        let bytes = try process.output.readAvailable()
        lastHeard = .now
        if bytes.isEmpty {
            state = state == .finished ? .finished : .ended
            return []
        }
        unread += bytes
        var messages: [WorkerMessage] = []
        while let newline = unread.firstIndex(of: UInt8(ascii: "\n")) {
            if let message = WorkerMessage(line: unread[..<newline]) { messages.append(message) }
            unread.removeSubrange(...newline)
        }
        for message in messages { note(message) }
        return messages
    }

    /// How it ended; waits for that.
    func end() throws(Errno) -> ChildProcess.End {
        try process.wait()
    }

    private func note(_ message: WorkerMessage) {
        switch message {
        case .ready: state = .ready
        case .report(let report): self.report = report
        case .finished(let report):
            self.report = report
            state = .finished
        case .wrongValue, .failure: break
        }
    }
}
