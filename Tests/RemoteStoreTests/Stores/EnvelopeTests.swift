// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import TestSupport
import Testing

@testable import RemoteStore

@Suite(.takesTurns) struct EnvelopeTests {
    private let key = Digest(ofKey: "key")
    private let parcel: RemoteEntry

    init() {
        let bytes = Data("value".utf8)
        let record = Record(content: Content(of: bytes.span), created: .now)
        parcel = RemoteEntry(
            record: record.encoded(for: key),
            bytes: bytes,
            digest: record.content.digest
        )
    }

    @Test("record and value survive the round trip")
    func roundTrip() {
        #expect(Envelope.open(Data(Envelope.seal(parcel)), for: key) == parcel)
    }

    @Test("slices keep the indexes of their base")
    func slice() {
        let bytes = Data([1, 2, 3] + Envelope.seal(parcel))
        #expect(Envelope.open(bytes.dropFirst(3), for: key) == parcel)
    }

    @Test("a value of another key, a truncated one and one with a damaged header are rejected")
    func refused() {
        let bytes = Envelope.seal(parcel)
        #expect(Envelope.open(Data(bytes), for: Digest(ofKey: "other")) == nil)
        let head = 8 + parcel.record.count
        for count in 0..<head { #expect(Envelope.open(Data(bytes.prefix(count)), for: key) == nil) }
        for index in 0..<head {
            var damaged = bytes
            damaged[index] ^= 1
            #expect(Envelope.open(Data(damaged), for: key) == nil)
        }
    }
}
