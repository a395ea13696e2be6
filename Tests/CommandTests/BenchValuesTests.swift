// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import diskcache

/// The checker must see every kind of wrong byte, else a green benchmark says nothing.
@Suite(.takesTurns) struct BenchValuesTests {
    private static let sizes = [64, 65, 4096, 65536]
    private let version = Version(stream: 3, number: 17)

    @Test(arguments: sizes)
    func `a value is found right, with the version that it was made of`(size: Int) {
        let values = SelfProvingValues(count: 10, size: size)
        let data = values.value(7, version: version)
        #expect(data.count == size)
        #expect(values.check(data, 7) == .right(version))
    }

    @Test
    func `a slice that does not begin at 0 is checked alike`() {
        let values = SelfProvingValues(count: 10, size: 100)
        let data = Data([1, 2, 3]) + values.value(7, version: version)
        #expect(values.check(data[3...], 7) == .right(version))
    }

    @Test
    func `two processes make the same value`() {
        let one = SelfProvingValues(count: 10, size: 4096).value(5, version: version)
        let other = SelfProvingValues(count: 10, size: 4096).value(5, version: version)
        #expect(one == other)
    }

    @Test
    func `each version of a key is different all over`() {
        let values = SelfProvingValues(count: 10, size: 4096)
        let one = values.value(5, version: Version(stream: 1, number: 1))
        let other = values.value(5, version: Version(stream: 1, number: 2))
        let same = zip(one, other).dropFirst(SelfProvingValues.headerSize).count { $0 == $1 }
        // 1 in 256 bytes agree by chance: 16 of 4056; 60 would be 11 standard deviations more.
        #expect(same < 60)
    }

    @Test(arguments: sizes)
    func `any flipped byte is found`(size: Int) {
        let values = SelfProvingValues(count: 10, size: size)
        let data = values.value(7, version: version)
        let step = max(1, size / 97)
        let positions = Set(0..<min(size, 64)).union(stride(from: 0, to: size, by: step)).union([size - 1])
        for position in positions {
            var damaged = data
            damaged[position] ^= 0x10
            guard case .wrong = values.check(damaged, 7) else {
                Issue.record("a flipped bit at \(position) was not found")
                continue
            }
        }
    }

    @Test
    func `a wrong byte in the body is told by its place`() {
        let values = SelfProvingValues(count: 10, size: 4096)
        var data = values.value(7, version: version)
        data[1234] ^= 1
        #expect(values.check(data, 7) == .wrong(.damagedBody(offset: 1234)))
    }

    @Test
    func `another key's value is found`() {
        let values = SelfProvingValues(count: 10, size: 4096)
        #expect(values.check(values.value(8, version: version), 7) == .wrong(.otherKey(8)))
    }

    @Test(arguments: [40, 100, 2048, 4095])
    func `a value torn between two versions is found`(position: Int) {
        let values = SelfProvingValues(count: 10, size: 4096)
        let old = values.value(7, version: Version(stream: 1, number: 1))
        let new = values.value(7, version: Version(stream: 1, number: 2))
        let torn = new[..<position] + old[position...]
        guard case .wrong(.damagedBody(let offset)) = values.check(torn, 7) else {
            Issue.record("the seam at \(position) was not found")
            return
        }
        #expect(offset >= position)
    }

    @Test(arguments: [0, 1, 39, 40, 4095])
    func `a truncated value is found`(length: Int) {
        let values = SelfProvingValues(count: 10, size: 4096)
        let cut = values.value(7, version: version).prefix(length)
        #expect(values.check(cut, 7) == .wrong(.length(length, expected: 4096)))
    }

    @Test
    func `a value that is too long is found`() {
        let values = SelfProvingValues(count: 10, size: 4096)
        let long = values.value(7, version: version) + [0]
        #expect(values.check(long, 7) == .wrong(.length(4097, expected: 4096)))
    }

    @Test
    func `zeros and foreign bytes are no value`() {
        let values = SelfProvingValues(count: 10, size: 4096)
        #expect(values.check(Data(count: 4096), 7) == .wrong(.noHeader))
        #expect(values.check(Data(repeating: 0xa5, count: 4096), 7) == .wrong(.noHeader))
    }

    @Test
    func `a header whose length is another's is damaged`() {
        let small = SelfProvingValues(count: 10, size: 64).value(7, version: version)
        let padded = small + Data(count: 4096 - 64)
        #expect(SelfProvingValues(count: 10, size: 4096).check(padded, 7) == .wrong(.damagedHeader))
    }
}

@Suite(.takesTurns) struct BenchWriteOrderTests {
    @Test
    func `a writer's older value after a newer one is outdated`() {
        var order = WriteOrder()
        #expect(order.check(Version(stream: 1, number: 5), ofKey: 0) == nil)
        #expect(order.check(Version(stream: 1, number: 5), ofKey: 0) == nil)
        let old = Version(stream: 1, number: 4)
        #expect(order.check(old, ofKey: 0) == .outdated(old, after: 5))
    }

    @Test
    func `a value older than one's own last put is outdated`() {
        var order = WriteOrder()
        order.note(Version(stream: 2, number: 9), ofKey: 3)
        let old = Version(stream: 2, number: 8)
        #expect(order.check(old, ofKey: 3) == .outdated(old, after: 9))
    }

    @Test
    func `values of different writers and keys come in any order`() {
        var order = WriteOrder()
        #expect(order.check(Version(stream: 1, number: 5), ofKey: 0) == nil)
        #expect(order.check(Version(stream: 2, number: 1), ofKey: 0) == nil)
        #expect(order.check(Version(stream: 1, number: 1), ofKey: 1) == nil)
        #expect(order.check(Version(stream: 1, number: 6), ofKey: 0) == nil)
    }

    @Test
    func `the initial value after any other is outdated`() {
        var order = WriteOrder()
        #expect(order.check(.initial, ofKey: 0) == nil)
        #expect(order.check(.recurring(2), ofKey: 0) == nil)
        #expect(order.check(.initial, ofKey: 0) == .outdated(.initial, after: 1))
        #expect(order.check(.initial, ofKey: 1) == nil)
    }

    @Test
    func `recurring values come in any order`() {
        var order = WriteOrder()
        #expect(order.check(.recurring(3), ofKey: 0) == nil)
        #expect(order.check(.recurring(1), ofKey: 0) == nil)
        #expect(order.check(.recurring(3), ofKey: 0) == nil)
    }
}
