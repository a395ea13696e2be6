// SPDX-License-Identifier: Apache-2.0

import CTransport
package import FoundationEssentials
import Platform

/// A response whose body is read while it arrives, in constant memory: in pieces, with a transfer that waits for the reader.
///
/// If it is released before the end, or the reader is cancelled, the transfer ends. Several readers share the pieces.
package final class TransportStream: AsyncSequence, Sendable {
    package typealias Element = Data
    package typealias Failure = TransportError

    /// The head when the body began.
    package let response: TransportResponse
    private let call: Call
    private let pieces: Pieces

    init(_ response: TransportResponse, _ call: Call, _ pieces: Pieces) {
        self.response = response
        self.call = call
        self.pieces = pieces
    }

    deinit {
        call.cancel()
    }

    /// The response with its length and digest, when the whole body has arrived; nil before that.
    package var ended: TransportResponse? { pieces.ended }

    package func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    /// The pieces in order, none of them empty.
    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let stream: TransportStream

        /// Returns the next piece, or nil at the end.
        ///
        /// - Throws: the error of a failed transfer, after the pieces before it.
        package mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(TransportError) -> Data? {
            try await stream.next()
        }

        /// Returns the next piece, or nil at the end.
        package mutating func next() async throws(TransportError) -> Data? {
            try await stream.next()
        }
    }

    private func next() async throws(TransportError) -> Data? {
        let next = await withTaskCancellationHandler {
            await pieces.next()
        } onCancel: {
            call.cancel()
        }
        return try next.get()
    }
}

/// The buffer between a transfer and its reader.
final class Pieces: Sendable {
    /// The maximum length, in bytes, and in pieces, which may be of one byte; enough that a returning reader finds the next
    /// one.
    private static let mostBytes = 256 * 1024
    private static let mostPieces = 64

    private struct State {
        var pieces: ArraySlice<Data> = []
        var bytes = 0
        var head: TransportResponse?
        var outcome: Call.Outcome?
        /// Whether reading has ended.
        var isClosed = false
        /// Counts the changes that readers wait for.
        var changes = 0
        var readers: [CheckedContinuation<Void, Never>] = []

        /// Counts a change, and returns the readers to wake.
        mutating func change() -> [CheckedContinuation<Void, Never>] {
            changes += 1
            let waiting = readers
            readers = []
            return waiting
        }
    }

    private let state = Monitored(State())

    // MARK: The transfer

    /// Begins the body.
    func begin(_ response: TransportResponse) {
        resume(
            state.withLock { state in
                state.head = response
                return state.change()
            }
        )
    }

    /// Adds a piece, after waiting for room, in a thread that may block; returns the reason if the transfer must end.
    func add(_ piece: Data, until deadline: ContinuousClock.Instant?) -> Int {
        let waiting: [CheckedContinuation<Void, Never>]?? = state.wait(until: deadline) { state in
            if state.isClosed { return .some(nil) }
            guard state.bytes < Self.mostBytes, state.pieces.count < Self.mostPieces else { return nil }
            state.pieces.append(piece)
            state.bytes += piece.count
            return .some(state.change())
        }
        guard let waiting else { return ctransport_reason_timed_out }
        guard let waiting else { return ctransport_reason_cancelled }
        resume(waiting)
        return ctransport_reason_none
    }

    /// Ends the transfer.
    func end(_ outcome: Call.Outcome) {
        resume(
            state.withLock { state in
                state.outcome = outcome
                return state.change()
            }
        )
    }

    // MARK: The reader

    /// Ends reading, so that the transfer does not wait.
    func close() {
        state.withLock { $0.isClosed = true }
        state.wakeAll()
    }

    func head() async -> Call.Outcome {
        await wait { state in state.head.map { .success($0) } ?? state.outcome }
    }

    /// Returns the next piece, or nil at the end.
    func next() async -> Result<Data?, TransportError> {
        let next: Result<Data?, TransportError> = await wait { state in
            if let piece = state.pieces.popFirst() {
                state.bytes -= piece.count
                return .success(piece)
            }
            return state.outcome.map { $0.map { _ in nil } }
        }
        state.wakeAll()
        return next
    }

    var ended: TransportResponse? {
        state.withLock { state in
            guard case .success(let response) = state.outcome else { return nil }
            return response
        }
    }

    /// Waits, without blocking a thread, until `look` returns a value.
    private func wait<Found>(for look: (inout State) -> Found?) async -> Found {
        while true {
            let (found, seen) = state.withLock { (look(&$0), $0.changes) }
            if let found { return found }
            await withCheckedContinuation { continuation in
                let hasChanged = state.withLock { state in
                    if state.changes == seen { state.readers.append(continuation) }
                    return state.changes != seen
                }
                if hasChanged { continuation.resume() }
            }
        }
    }

    private func resume(_ readers: [CheckedContinuation<Void, Never>]) {
        for reader in readers { reader.resume() }
    }
}
