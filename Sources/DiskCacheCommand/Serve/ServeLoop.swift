// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Answers the requests on standard input one after the other, until the input ends.
struct ServeLoop {
    private let operations: ServeOperations
    private let decoder = JSONDecoder()
    private var input: LineInput
    private var answers = ServeAnswers()

    init(_ operations: ServeOperations, until end: ShutdownSignal) {
        self.operations = operations
        input = LineInput(until: end)
    }

    /// Answers all requests.
    ///
    /// - Returns: `done` when the input has ended or a signal has arrived; `dataError` if the input is invalid.
    /// - Throws: If the input can't be read or the output can't be written.
    mutating func run() throws -> ExitStatus {
        do {
            while let (request, bytes) = try next() {
                do {
                    try operations.perform(request, bytes, &answers)
                } catch {
                    guard let fault = ServeFault(error) else { throw error }
                    try answers.send(fault, to: request.id)
                }
            }
        } catch let fault as ServeFault {
            try answers.send(fault)
            try answers.output.flush()
            return .dataError
        }
        try answers.output.flush()
        return .done
    }

    /// Returns the next request and the bytes that follow it; nil at the end of the input.
    ///
    /// - Throws: ``ServeFault`` if the end of the request can't be determined.
    private mutating func next() throws -> (ServeRequest, Data)? {
        guard let line = try nextLine() else { return nil }
        var request: ServeRequest
        do {
            request = try decoder.decode(ServeRequest.self, from: line)
        } catch {
            throw ServeFault(.malformed, "the line is not a JSON object: write one object on each line")
        }
        let length = request.length ?? 0
        guard length >= 0 else {
            throw ServeFault(.malformed, "length must be the number of bytes that follow the line")
        }
        let isTooLong = length > operations.longestValue
        var bytes = Data()
        let isWhole = try input.bytes(length, flushing: &answers.output) { piece in
            // A value that is too long is skipped, so that the next request can be answered.
            if !isTooLong { bytes.append(contentsOf: piece) }
        }
        guard isWhole else {
            if input.isStopped { return nil }
            throw ServeFault(.malformed, "the input ends within a value: the request was ignored")
        }
        if isTooLong {
            let most = operations.longestValue
            let advice = "use file, or start with a larger --max-value"
            request.fault = ServeFault(.badRequest, "a value of \(length) bytes exceeds \(most): \(advice)")
        }
        return (request, bytes)
    }

    /// Returns the next nonempty line; nil at the end of the input.
    private mutating func nextLine() throws -> Data? {
        do {
            while let line = try input.line(flushing: &answers.output) {
                if input.isCut {
                    throw ServeFault(.malformed, "the input ends within a line: the request was ignored")
                }
                if !line.isEmpty { return line }
            }
            return nil
        } catch is LineInput.TooLong {
            throw ServeFault(.malformed, "the line is longer than \(LineInput.longestLine) bytes")
        }
    }
}
