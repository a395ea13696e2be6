// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform
import Transport

/// The file that a body comes into, and what is known of the beginning that may be in it already.
///
/// Of a GET it is the one in the cache's directory that all processes know by its key, if nobody else has it;
/// then what a killed process has got is there, and goes on (RFC 9110, section 13.1.5). Otherwise it has no
/// name, and goes with this. All calls block, but for ``number``.
final class Download: Sendable {
    /// What a response means for what is there.
    enum Receipt: Sendable {
        /// The response as if it had come at once, with its body in the file.
        case whole(HTTPResponse)
        /// It is of no use, and the partial body is gone: ask again.
        case again
    }

    /// By what a body is judged.
    struct Terms: Sendable {
        var policy: HTTPCachePolicy
        var request: HTTPRequest
        var seal: Seal
        var mostBytes: Int
    }

    private enum Place {
        case partial(PartialFile)
        case scratch(OpenFile)
    }

    private struct State {
        /// What is in the file and was asked to go on; nil: the next body is a new one.
        var beginning: StoredResponse?
        /// Set where the first byte of a body has come, or there is none.
        var isDecided = false
        /// Of the body that comes into the file.
        var expected: ExpectedBody?
        /// Whether the bytes that come are dropped.
        var isDropped = false
        var isTooLarge = false
        /// The length that there is room for.
        var reserved = 0
        /// Why the body could not even begin.
        var failure: Errno?
    }

    /// The descriptor for the body: it is written at its end.
    let number: Int32
    /// The file that can become an object; nil for one that can't, also where there is no room to keep it.
    var partial: PartialFile? {
        if case .partial(let partial) = place, isKept.withLock({ $0 }) { partial } else { nil }
    }
    private let place: Place
    private let cache: SharedCache
    private let isKept = Locked(true)
    private let terms: Terms
    private let state = Locked(State())

    /// In `partial`, or without it in a file that has no name, in the directory of `cache` or in /tmp.
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

    // MARK: Before

    /// The fields by which `request` continues what is there; none where it can't, and then the file is
    /// empty.
    ///
    /// A request with a condition leaves what is there alone: what is stored may turn out to be right.
    func prepare(_ request: HTTPRequest) throws(Errno) -> HTTPFields {
        state.withLock { $0 = State() }
        guard let partial, let beginning = try beginning(of: partial) else {
            try clear()
            return [:]
        }
        if request.isConditional { return [:] }
        guard let fields = beginning.resumingFields else {
            try clear()
            return [:]
        }
        state.withLock { $0.beginning = beginning }
        return fields
    }

    /// What the file is the beginning of, if it is for this request.
    private func beginning(of partial: PartialFile) throws(Errno) -> StoredResponse? {
        let length = try partial.length()
        guard length > 0, let note = partial.noted,
            let head = StoredHead(String(decoding: note, as: UTF8.self))
        else { return nil }
        let response = head.response(.part(0..<length, of: head.length))
        let isWanted = terms.policy.matches(response, terms.request, seal: { terms.seal($0) })
        return isWanted && length <= head.length ?? .max ? response : nil
    }

    private func clear() throws(Errno) {
        switch place {
        case .partial(let partial): try partial.clear()
        case .scratch(let scratch):
            try scratch.file.truncate(to: 0)
            try scratch.file.rewind()
        }
    }

    // MARK: While it comes

    /// What becomes of the body that begins now, in the transport's thread.
    ///
    /// It takes no lock on disk: a few calls on the file that the body is written to in the next moment.
    func disposition(
        _ response: HTTPResponse,
        requested: HTTPDate,
        now: HTTPDate
    ) -> TransportRequest.Disposition {
        let beginning: StoredResponse? = state.withLock { state in
            state.isDecided = true
            return state.beginning
        }
        if let beginning {
            switch beginning.resumption(by: response, received: now) {
            case .append(let expected):
                let disposition = keep(expected, response)
                if case .stop = disposition { return .stop }
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
            // Bytes of two bodies must not come together.
            state.withLock { $0.failure = error }
            return .stop
        }
        state.withLock { $0.beginning = nil }
        note(response, requested: requested, now: now)
        return reserve(1, written: 0) ? disposition : .stop
    }

    /// Whether there may be more of the body, of which so many bytes have come.
    func mayGrow(_ received: Int64) -> Bool {
        let (held, reserved) = state.withLock { ($0.expected?.held ?? 0, $0.reserved) }
        let length = held + Int(received)
        // Before the next piece comes.
        return length + PartialFile.longestPiece <= reserved
            || reserve(length + PartialFile.longestPiece, written: length)
    }

    /// Makes room for the body up to `length` bytes, and some more; false: the disk has none.
    ///
    /// What can't be kept, as the limits don't allow it, loses its name and is only handed on.
    private func reserve(_ length: Int, written: Int) -> Bool {
        let expected = state.withLock { $0.expected }
        let total = expected.flatMap { body in body.total ?? body.added.map { body.held + $0 } }
        if let partial {
            do throws(CacheError) {
                let reserved = try cache.reserve(length, of: total, in: partial)
                state.withLock { $0.reserved = reserved }
                return true
            } catch {
                isKept.withLock { $0 = false }
                partial.discard()
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

    /// Lets no more bytes into the file than are expected: whoever goes on with it, after a kill, too, takes what
    /// is there for the beginning of the body.
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

    /// What a server says that is at its limits is no reason to give up what there is, nor that who asks lacks
    /// a right: with one, it goes on.
    private static func isPassing(_ response: HTTPResponse) -> Bool {
        response.status >= 500 || [401, 403, 407, 408, 429].contains(response.status)
    }

    /// Notes what the body is that comes into the empty file, if somebody may go on with it.
    private func note(_ response: HTTPResponse, requested: HTTPDate, now: HTTPDate) {
        guard let partial, response.status == 200,
            terms.policy.storing(response, to: terms.request) == .complete,
            let variant = variant(of: response)
        else { return }
        let length = response.contentLength
        let stored = StoredResponse(
            fields: KeptFields.of(response.fields),
            requested: requested,
            received: now,
            variant: variant,
            body: .part(0..<0, of: length)
        )
        let head = StoredHead(stored, epoch: "-", length: length)
        // Where it can't be noted, nobody goes on with it.
        _ = partial.begin(noting: Array(head.text.utf8))
    }

    /// What has chosen it; nil if nothing may.
    func variant(of response: HTTPResponse) -> Variant? {
        terms.policy.variant(of: response.fields, to: terms.request, seal: { terms.seal($0) })
    }

    // MARK: Afterwards

    /// What came of the transfer.
    func receipt(of response: HTTPResponse, now: HTTPDate) throws -> Receipt {
        let present = state.withLock { $0 }
        if present.isTooLarge { throw tooLarge }
        if let failure = present.failure { throw failure }
        if response.status == 304 || present.beginning != nil && Self.isPassing(response) {
            // It has no body, or none that is worth what is there.
            state.withLock { $0.isDropped = true }
            return .whole(response)
        }
        guard let beginning = present.beginning else {
            // Without a first byte nobody was asked.
            if !present.isDecided { try clear() }
            try checkLength(ExpectedBody(response), response)
            return .whole(response)
        }
        switch beginning.resumption(by: response, received: now) {
        case .append(let expected):
            try checkLength(expected, response)
            var fields = KeptFields.updated(beginning.fields, with: response.fields)
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

    /// - Throws: ``FetchError`` where the body is not whole. What is too long is dropped.
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

    /// The outcome of a failed transfer.
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

    /// Whether the response has left in the file what was there, and so is not to be kept with it.
    var isDropped: Bool { state.withLock { $0.isDropped } }

    /// Bytes that are there; none where they were dropped.
    var length: Int {
        get throws(Errno) {
            if isDropped { return 0 }
            switch place {
            case .partial(let partial): return try partial.length()
            case .scratch(let scratch): return Int(try scratch.file.status().size)
            }
        }
    }

    /// The body, readable whatever becomes of the file's name.
    func body() throws(Errno) -> FetchedBody {
        let length = try self.length
        if length == 0 { return .nothing }
        switch place {
        case .partial(let partial):
            return .file(OpenFile(try FileDescriptor.duplicate(partial.file.rawValue)), 0..<length)
        case .scratch(let scratch): return .file(scratch, 0..<length)
        }
    }

    /// Ends it without a response, because of `error`: what can be continued stays.
    func abandon(after error: (any Error)? = nil) {
        guard let partial else { return }
        let code = (error as? FetchError)?.code
        // What was there before is not too long for those who accept more.
        let isOthers = state.withLock { $0.isTooLarge && $0.beginning != nil }
        let isWrong = code == .tooLarge && !isOthers || code == .digestMismatch
        // To go on with it is worth less than what would have to make room for it.
        if isWrong || partial.noted == nil || cache.isPressed { partial.discard() }
        // Not only when this goes: whoever is told of the end may ask again while a thread of the transport still
        // knows of it.
        partial.letGo()
    }

    /// Ends it with a response that does not become an object.
    func release() {
        if !isDropped { partial?.discard() }
        partial?.letGo()
    }
}
