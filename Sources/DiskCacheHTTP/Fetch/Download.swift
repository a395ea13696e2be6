// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform
import Transport

/// The file that receives a body, and the description of the partial body that the file may already contain.
///
/// For a GET, the file is in the cache's directory, where all processes find it by its key; if a killed process left a
/// partial body there, the download continues it (RFC 9110, section 13.1.5). If another download uses that file, and for
/// other methods, the file has no name and is deleted with this object. All calls block, except ``number``.
final class Download: Sendable {
    /// What a response means for the content of the file.
    enum Receipt: Sendable {
        /// The file contains the body of this response, which is returned as if its body had arrived in one piece.
        case whole(HTTPResponse)
        /// The response is unusable, and the partial body was deleted: send the request again.
        case again
    }

    /// The request, and the criteria for its body.
    struct Terms: Sendable {
        var policy: HTTPCachePolicy
        var request: HTTPRequest
        var hasher: CredentialHasher
        var mostBytes: Int
        /// When the caller's time limit ends; nil without a limit.
        var deadline: ContinuousClock.Instant?
    }

    private enum Place {
        case partial(PartialFile)
        case scratch(OpenFile)
    }

    private struct State {
        /// The partial body in the file that the request continues; nil if the response's body is written from the
        /// beginning.
        var beginning: StoredResponse?
        /// The response whose body began; the transport calls ``disposition(_:requested:now:)`` at the first byte.
        var head: HTTPResponse?
        /// Whether the body may be stored, so that space is made for it.
        var isStorable = true
        /// The expected length of the body that goes into the file.
        var expected: ExpectedBody?
        /// Whether the received body was dropped, so that the file keeps its earlier content.
        var isDropped = false
        var isTooLarge = false
        /// The length in bytes for which space is reserved.
        var reserved = 0
        /// The error that stopped the body.
        var failure: Errno?
    }

    /// The longest body that is received into the file although it may not be stored, so that the next attempt can still
    /// use the file.
    private static let longestUnstored = 1 << 20

    /// The descriptor to which the body is written, at the end of the file.
    let number: Int32
    /// The file that can become an object; nil if the body has an unnamed file, or if there is no room to store it.
    var partial: PartialFile? {
        if case .partial(let partial) = place, isKept.withLock({ $0 }) { partial } else { nil }
    }
    private let place: Place
    private let cache: SharedCache
    private let isKept = Locked(true)
    private let hasEnded = Locked(false)
    private let terms: Terms
    private let state = Locked(State())

    /// Creates a download into `partial` or, if that is nil, into an unnamed file in the directory of `cache` or in /tmp.
    init(_ partial: PartialFile?, in cache: SharedCache, _ terms: Terms) throws(Errno) {
        (self.cache, self.terms) = (cache, terms)
        if let partial {
            place = .partial(partial)
            number = partial.file.rawValue
            return
        }
        let scratch = OpenFile(try Self.unnamedFile(in: cache.path))
        place = .scratch(scratch)
        number = scratch.file.rawValue
    }

    private static func unnamedFile(in directory: String) throws(Errno) -> FileDescriptor {
        do throws(Errno) {
            return try FileDescriptor.unnamed(in: directory)
        } catch {
            return try FileDescriptor.unnamed(in: "/tmp")
        }
    }

    // MARK: Before the transfer

    /// Returns the fields that make `request` continue the partial body; if none can, clears the file and returns no
    /// fields.
    ///
    /// If the caller's own request is conditional or has a range, the partial body is kept but not continued. If only the
    /// cache's request is conditional, both are possible: the server evaluates If-None-Match before Range (RFC 9110,
    /// section 13.2.2).
    func prepare(_ request: HTTPRequest) throws(Errno) -> HTTPFields {
        state.withLock { $0 = State() }
        guard let partial, let beginning = try beginning(of: partial) else {
            try clear()
            return [:]
        }
        if terms.request.isConditional || request.fields.contains("Range") { return [:] }
        guard let fields = beginning.resumingFields else {
            try clear()
            return [:]
        }
        state.withLock { $0.beginning = beginning }
        return fields
    }

    /// Returns the partial response in the file, or nil if this request can't continue it.
    private func beginning(of partial: PartialFile) throws(Errno) -> StoredResponse? {
        let length = try partial.length()
        guard length > 0, let note = partial.noted,
            let response = StoredResponse(
                String(decoding: note, as: UTF8.self),
                body: { .part(0..<length, of: $0) }
            )
        else { return nil }
        let isWanted = terms.policy.matches(response, terms.request, hasher: { terms.hasher($0) })
        return isWanted && length <= response.length ?? .max ? response : nil
    }

    private func clear() throws(Errno) {
        switch place {
        case .partial(let partial): try partial.clear()
        case .scratch(let scratch):
            try scratch.file.truncate(to: 0)
            try scratch.file.rewind()
        }
    }

    // MARK: During the transfer

    /// Decides what happens to the body that begins now; the transport calls this on its thread.
    ///
    /// Costs only a few system calls on the file, unless the reservation of space waits for eviction.
    func disposition(
        _ response: HTTPResponse,
        requested: HTTPDate,
        now: HTTPDate
    ) -> TransportRequest.Disposition {
        let beginning: StoredResponse? = state.withLock { state in
            state.head = response
            return state.beginning
        }
        if let beginning {
            switch beginning.resumption(by: response, received: now) {
            case .append(let expected):
                let disposition = keep(expected, response)
                if case .stop = disposition { return .stop }
                let fields = StoredFields.updated(beginning.fields, with: response.fields)
                if storableVariant(of: HTTPResponse(200, fields)) == nil { doNotStore() }
                return reserve(expected.held + 1, written: expected.held) ? disposition : .stop
            case .complete: return .stop
            default:
                if response.status == 206 || response.status == 416 { return .stop }
                if Self.isPassing(response) { return .discard }
            }
        }
        let expected = ExpectedBody(response)
        let disposition = keep(expected, response)
        if case .stop = disposition { return .stop }
        do throws(Errno) {
            try clear()
        } catch {
            // Otherwise the file would contain the bytes of two bodies.
            state.withLock { $0.failure = error }
            return .stop
        }
        let isStorable = storableVariant(of: response) != nil
        state.withLock { state in
            state.beginning = nil
            state.isStorable = isStorable
        }
        if isStorable {
            note(response, requested: requested, now: now)
        } else if (200..<300).contains(response.status), response.status != 206 {
            // No other response to this request follows.
            doNotStore()
        }
        return reserve(1, written: 0) ? disposition : .stop
    }

    /// Takes the file's name away: the body is returned, but not stored.
    private func doNotStore() {
        isKept.withLock { $0 = false }
        if case .partial(let partial) = place { partial.discard() }
    }

    /// Returns whether the transfer may continue after `received` bytes of the body.
    func mayGrow(_ received: Int64) -> Bool {
        let (held, reserved) = state.withLock { ($0.expected?.held ?? 0, $0.reserved) }
        let length = held + Int(received)
        // Space is reserved before the next piece arrives.
        return length + PartialFile.longestPiece <= reserved
            || reserve(length + PartialFile.longestPiece, written: length)
    }

    /// Reserves space for `length` bytes of the body, and for some more; returns false if the disk is full.
    ///
    /// If the limits do not allow the body to be stored, the file loses its name, and the body is only returned. So does
    /// the file of a long body that may not be stored: nothing is evicted for it.
    private func reserve(_ length: Int, written: Int) -> Bool {
        let expected = state.withLock { $0.expected }
        let total = expected.flatMap { body in body.total ?? body.added.map { body.held + $0 } }
        if let partial, !isStorable {
            let most = Self.longestUnstored
            if total ?? length <= most {
                let reserved = total ?? most
                cache.count(reserved, in: partial)
                state.withLock { $0.reserved = reserved }
                return true
            }
            doNotStore()
        }
        if let partial {
            do throws(CacheError) {
                let left = terms.deadline.map { max(.zero, $0 - .now) }
                let reserved = try cache.reserve(length, of: total, in: partial, within: left)
                state.withLock { $0.reserved = reserved }
                return true
            } catch {
                doNotStore()
            }
        }
        let goal = PartialFile.reservation(for: length, of: total)
        let hasSpace =
            switch place {
            case .partial(let partial): cache.hasSpace((total ?? goal) - written, in: partial.file)
            case .scratch(let scratch): cache.hasSpace((total ?? goal) - written, in: scratch.file)
            }
        state.withLock { state in
            if hasSpace { state.reserved = goal } else { state.failure = .noSpace }
        }
        return hasSpace
    }

    /// Limits the file to the expected number of bytes.
    ///
    /// A download that continues the file, even after a kill, assumes that the file contains nothing but the beginning of
    /// the body.
    private func keep(_ expected: ExpectedBody, _ response: HTTPResponse) -> TransportRequest.Disposition {
        let length = expected.total ?? expected.added
        let isTooLarge = (200..<300).contains(response.status) && length ?? 0 > terms.mostBytes
        state.withLock { state in
            state.isTooLarge = isTooLarge
            state.expected = expected
        }
        if isTooLarge { return .stop }
        return expected.added.map { .keepUpTo(Int64($0)) } ?? .keep
    }

    /// Returns whether the partial body remains valid after this response: the server is overloaded, or the client lacks
    /// authorization.
    ///
    /// A later request with authorization can continue the partial body.
    private static func isPassing(_ response: HTTPResponse) -> Bool {
        response.status >= 500 || [401, 403, 407, 408, 429].contains(response.status)
    }

    /// Records the response whose body goes into the empty file, so that a later download can continue it; does nothing
    /// if that is not allowed.
    private func note(_ response: HTTPResponse, requested: HTTPDate, now: HTTPDate) {
        guard let partial, response.status == 200, let variant = storableVariant(of: response) else { return }
        let stored = StoredResponse(
            fields: StoredFields.of(response.fields),
            requested: requested,
            received: now,
            variant: variant,
            body: .part(0..<0, of: response.contentLength)
        )
        // Without the record, no later download continues the file.
        _ = partial.begin(noting: Array(stored.text.utf8))
    }

    /// Returns the variant of the response, or nil if it may not be stored.
    private func storableVariant(of response: HTTPResponse) -> Variant? {
        guard terms.policy.storing(response, to: terms.request) == .complete else { return nil }
        return variant(of: response)
    }

    /// Whether the body goes into a file that can become an object, and the response may be stored.
    var isStorable: Bool { partial != nil && state.withLock { $0.isStorable } }

    /// The response whose body began; nil if there was none.
    var head: HTTPResponse? { state.withLock { $0.head } }

    /// Returns the variant of the response, or nil if no later request may match it.
    func variant(of response: HTTPResponse) -> Variant? {
        terms.policy.variant(of: response.fields, to: terms.request, hasher: { terms.hasher($0) })
    }

    // MARK: After the transfer

    /// Returns the outcome of the transfer.
    func receipt(of response: HTTPResponse, now: HTTPDate) throws -> Receipt {
        let present = state.withLock { $0 }
        if present.isTooLarge { throw tooLarge }
        if let failure = present.failure { throw failure }
        if response.status == 304 || present.beginning != nil && Self.isPassing(response) {
            // A 304 has no body, and the body of an error is worth less than the partial body.
            state.withLock { $0.isDropped = true }
            return .whole(response)
        }
        guard let beginning = present.beginning else {
            // For an empty body the transport does not call `disposition`.
            if present.head == nil { try clear() }
            try checkLength(ExpectedBody(response), response)
            return .whole(response)
        }
        switch beginning.resumption(by: response, received: now) {
        case .append(let expected):
            try checkLength(expected, response)
            var fields = StoredFields.updated(beginning.fields, with: response.fields)
            fields.set("Content-Length", String(try length))
            return .whole(HTTPResponse(200, fields))
        case .complete: return .whole(HTTPResponse(200, beginning.fields))
        case .replace, .restart, .unrelated:
            try clear()
            if response.status == 206 || response.status == 416 { return .again }
            try checkLength(ExpectedBody(response), response)
            return .whole(response)
        }
    }

    /// Checks the length of the received body.
    ///
    /// - Throws: ``FetchError`` if the body is incomplete or too long. A body that is too long is deleted.
    private func checkLength(_ expected: ExpectedBody, _ response: HTTPResponse) throws {
        if terms.request.method == "HEAD" || response.status == 204 { return }
        let length = try self.length
        switch expected.verdict(on: length) {
        case .whole: return
        case .tooLong:
            try clear()
            throw tooLong
        case .incomplete:
            let total = expected.total ?? expected.added.map { expected.held + $0 }
            let words = total.map { ", of \($0)" } ?? ""
            throw FetchError(.truncated, "\(terms.request.url.place): \(length) bytes came\(words)")
        }
    }

    /// Returns the error of a failed transfer.
    func failure(_ error: TransportError) throws -> FetchError {
        let expected = state.withLock { $0.expected }
        guard error.code == .tooLarge, let added = expected?.added, added <= terms.mostBytes else {
            return FetchError(error)
        }
        try clear()
        return tooLong
    }

    private var tooLong: FetchError {
        FetchError(.protocolViolation, "\(terms.request.url.place): more bytes came than the head says")
    }

    private var tooLarge: FetchError {
        FetchError(.tooLarge, "\(terms.request.url.place): longer than \(terms.mostBytes) bytes")
    }

    /// Whether the received body was dropped: the file still has its earlier content, which does not belong to the
    /// response.
    var isDropped: Bool { state.withLock { $0.isDropped } }

    /// The length of the body in the file; 0 if it was dropped.
    var length: Int {
        get throws(Errno) {
            if isDropped { return 0 }
            switch place {
            case .partial(let partial): return try partial.length()
            case .scratch(let scratch): return Int(try scratch.file.status().size)
            }
        }
    }

    /// Returns the body, which remains readable without the file's name.
    func body() throws(Errno) -> FetchedBody {
        let length = try self.length
        if length == 0 { return .nothing }
        switch place {
        case .partial(let partial):
            return .file(OpenFile(try FileDescriptor.duplicate(partial.file.rawValue)), 0..<length)
        case .scratch(let scratch): return .file(scratch, 0..<length)
        }
    }

    /// Ends the download without a response, because of `error`; keeps a partial body that can be continued.
    func abandon(after error: (any Error)? = nil) {
        guard let partial, ends() else { return }
        let code = (error as? FetchError)?.code
        // A request with a higher limit can still use the earlier partial body.
        let isOthers = state.withLock { $0.isTooLarge && $0.beginning != nil }
        let isWrong = code == .tooLarge && !isOthers || code == .digestMismatch
        // When the cache is near its limits, stored values are worth more than a partial body.
        if isWrong || partial.noted == nil || cache.isPressed { partial.discard() }
        // Not left to deinit: a caller that learns of the end may send another request while a thread of the transport
        // still holds a reference to this object.
        partial.letGo()
    }

    /// Ends the download with a response; deletes the file if it has not become an object.
    func release() {
        guard let partial, ends() else { return }
        if !isDropped { partial.discard() }
        partial.letGo()
    }

    /// Returns true the first time: once the file is unlocked, it may belong to another download.
    private func ends() -> Bool {
        hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
    }
}
