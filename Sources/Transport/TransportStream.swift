// SPDX-License-Identifier: Apache-2.0

import CTransport
package import FoundationEssentials
import Platform

/// A response whose body is read as it comes, in constant memory: in pieces, which the transfer waits with.
///
/// Whoever lets it go before the end, or is cancelled, ends the transfer. Several readers share the pieces.
package final class TransportStream: AsyncSequence, Sendable {
    package typealias Element = Data
    package typealias Failure = TransportError

    /// The head, as of when the body began.
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

    /// The response with what is known when all of it has come: how many bytes, and the digest; nil before.
    package var ended: TransportResponse? { pieces.ended }

    package func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    /// One piece after another, none of them empty.
    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let stream: TransportStream

        /// - Throws: why the transfer has failed, when what came before that was read.
        package mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(TransportError) -> Data? {
            try await stream.next()
        }

        /// The same.
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

/// What lies between a transfer and its reader.
final class Pieces: Sendable {
    /// Enough for a reader to find the next one when it comes back; bytes, and pieces, which may be of one
    /// byte.
    private static let mostBytes = 256 * 1024
    private static let mostPieces = 64

    private struct State {
        var pieces: ArraySlice<Data> = []
        var bytes = 0
        var head: TransportResponse?
        var outcome: Call.Outcome?
        /// Nobody reads any more.
        var isClosed = false
        /// Counts what readers wait for.
        var changes = 0
        var readers: [CheckedContinuation<Void, Never>] = []

        /// Those who are to be woken.
        mutating func change() -> [CheckedContinuation<Void, Never>] {
            changes += 1
            let waiting = readers
            readers = []
            return waiting
        }
    }

    private let state = Monitored(State())

    // MARK: The transfer

    /// The body begins.
    func begin(_ response: TransportResponse) {
        resume(
            state.withLock { state in
                state.head = response
                return state.change()
            }
        )
    }

    /// Waits until there is room for the piece, in a thread that may; gives why the transfer is to end, if it
    /// is.
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

    /// The transfer has ended.
    func end(_ outcome: Call.Outcome) {
        resume(
            state.withLock { state in
                state.outcome = outcome
                return state.change()
            }
        )
    }

    // MARK: The reader

    /// Nobody reads any more: the transfer is not to wait.
    func close() {
        state.withLock { $0.isClosed = true }
        state.wakeAll()
    }

    func head() async -> Call.Outcome {
        await wait { state in state.head.map { .success($0) } ?? state.outcome }
    }

    /// nil: the end.
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

    /// Waits, without a thread, until `look` finds something.
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
