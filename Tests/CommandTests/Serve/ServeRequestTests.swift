// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The requests that `serve` parses from lines.
@Suite(.takesTurns) struct ServeRequestTests {
    static func request(_ json: String) throws -> ServeRequest {
        try JSONDecoder().decode(ServeRequest.self, from: Data(json.utf8))
    }

    @Test func `known fields are parsed, and unknown fields are ignored`() throws {
        let line = #"{"op":"get","id":7,"key":"k","stale":true,"length":5,"colour":"red"}"#
        let request = try Self.request(line)
        #expect(request.operation == "get" && request.id == .number(7) && request.length == 5)
        #expect(try request.theKey() == "k")
        #expect(request.stale == true && request.entry == nil && request.fault == nil)
    }

    @Test func `null is treated as a missing field`() throws {
        let request = try Self.request(#"{"op":"get","id":null,"length":null,"ttl":null}"#)
        #expect(request.id == nil && request.length == nil && request.terms.ttl == nil)
        #expect(request.fault == nil)
    }

    @Test(arguments: [
        "key", "keys", "file", "prefix", "tag", "all", "stale", "entry", "scan", "ttl", "expiresAt", "renew",
        "staleFor",
    ])
    func `a field of the wrong type is a fault that names the field`(field: String) throws {
        let request = try Self.request(#"{"op":"get","id":"x","\#(field)":{}}"#)
        #expect(request.fault?.code == "badRequest" && request.fault?.isFatal == false)
        #expect(request.fault?.message.hasPrefix(field + " must be") == true)
        #expect(request.id == .text("x"), "so that it can be answered")
    }

    @Test func `an invalid length is parsed as -1, and a missing length as nil`() throws {
        for length in ["-1", "\"5\"", "1.5", "[]", "true"] {
            #expect(try Self.request(#"{"op":"put","length":\#(length)}"#).length == -1, "\(length)")
        }
        #expect(try Self.request(#"{"op":"put"}"#).length == nil)
    }

    @Test(arguments: ["", "[]", "5", "\"op\"", "{", "{}{}"])
    func `a line that is not a JSON object is not a request`(line: String) {
        #expect(throws: (any Error).self) { try Self.request(line) }
    }

    @Test func `a time span is a number of seconds or a text with units`() throws {
        func terms(_ fields: String) throws -> ServeTerms { try Self.request("{\(fields)}").terms }
        #expect(try terms(#""ttl":1.5"#).expiration() == .after(.milliseconds(1500)))
        #expect(try terms(#""ttl":"15m""#).expiration() == .after(.seconds(900)))
        #expect(try terms(#""ttl":"never""#).expiration() == .never)
        #expect(try terms("").expiration() == nil)
        #expect(try terms(#""ttl":60,"renew":true"#).onAccess == .renew)
        #expect(try terms(#""staleFor":"1h""#).options().staleFor == .seconds(3600))
        let never = #""ttl":"never","renew":true"#
        for wrong in [#""ttl":-1"#, #""ttl":"x""#, never, #""expiresAt":"2030-02-31""#] {
            #expect(throws: (any Error).self) { try terms(wrong).options() }
        }
    }

    @Test func `errors have codes of the cache or of the protocol`() throws {
        struct Other: Error {}
        let full = CacheError(.noSpace, "full")
        #expect(ServeFault(full as any Error) == ServeFault(full))
        #expect(ServeFault(full).code == "noSpace" && ServeFault(full).message == "full")
        #expect(ServeFault(Failure.usage("wrong") as any Error)?.code == "badRequest")
        #expect(ServeFault(Failure(.configuration, "none") as any Error)?.code == "unavailable")
        #expect(ServeFault(Other() as any Error) == nil)
        #expect(ServeFault(.malformed, "").isFatal && !ServeFault(.badRequest, "").isFatal)
    }
}
