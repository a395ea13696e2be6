// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct VerifiedObjectsTests {
    private func content(_ number: Int) -> Content { Content(of: Array("value \(number)".utf8).span) }

    @Test func `each of many recorded objects is known, and no other`() {
        let objects = VerifiedObjects()
        for number in 0..<40_000 { objects.note(content(number).digest, content(number)) }
        for number in stride(from: 0, to: 40_000, by: 7) {
            guard case .agrees = objects.compare(content(number)) else {
                Issue.record("\(number) is not as it was")
                return
            }
        }
        for number in 40_000..<50_000 {
            guard case .nothing = objects.compare(content(number)) else {
                Issue.record("\(number) was never there")
                return
            }
        }
        #expect(objects.unreferenced == 40_000 - 5715)
    }

    @Test func `another length or checksum differs, and counts as a reference`() {
        let objects = VerifiedObjects()
        let real = content(1)
        objects.note(real.digest, real)
        for (length, checksum) in [(real.length + 1, real.checksum), (real.length, real.checksum ^ 1)] {
            let claim = Content(digest: real.digest, length: length, checksum: checksum)
            guard case .differs = objects.compare(claim) else {
                Issue.record("not noticed")
                return
            }
        }
        #expect(objects.unreferenced == 0)
    }

    @Test func `a corrupt object is known to be corrupt and is no orphan`() {
        let objects = VerifiedObjects()
        objects.note(content(1).digest, content(2))
        guard case .corrupt = objects.compare(content(1)) else {
            Issue.record("not corrupt")
            return
        }
        #expect(objects.unreferenced == 0)
    }
}
