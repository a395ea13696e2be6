// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

@Suite(.takesTurns) struct SharedMappingTests {
    @Test func `only local file systems share memory, and only some of them map the file`() {
        func mapping(_ magic: Int64, _ isAssumedLocal: Bool = false) -> SharedMapping {
            SharedMapping(on: FileSystemKind(magic: magic), isAssumedLocal: isAssumedLocal)
        }
        for magic: Int64 in [0xEF53, 0x0102_1994, 0x8584_58F6] { #expect(mapping(magic) == .file) }
        for magic: Int64 in [0x5846_5342, 0x9123_683E, 0xCA45_1A4E, 0x2FC1_2FC1, 0xF2F5_2010, 0x794C_7630] {
            #expect(mapping(magic) == .memory)
        }
        for magic: Int64 in [0x6969, 0x6573_5546, 0xABC] {
            #expect(mapping(magic) == .none && mapping(magic, true) == .memory)
        }
    }
}
