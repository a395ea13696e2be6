// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The checker must detect every kind of wrong byte, else a benchmark that passes proves nothing.
@Suite(.takesTurns) struct BenchValuesTests {
    private static let sizes = [64, 65, 4096, 65536]
    private let version: UInt64 = 3 << 32 | 17

    @Test(arguments: sizes)
    func `an intact value passes the check`(size: Int) {
        let values = SelfProvingValues(size: size)
        let data = values.value(7, version: version)
        #expect(data.count == size)
        #expect(values.problem(in: data, of: 7) == nil)
    }

    @Test
    func `a slice with a nonzero start index passes the check`() {
        let values = SelfProvingValues(size: 100)
        let data = Data([1, 2, 3]) + values.value(7, version: version)
        #expect(values.problem(in: data[3...], of: 7) == nil)
    }

    @Test
    func `two generators make the same value for a key and a version`() {
        let one = SelfProvingValues(size: 4096).value(5, version: version)
        let other = SelfProvingValues(size: 4096).value(5, version: version)
        #expect(one == other)
    }

    @Test
    func `versions of a key differ in the whole body`() {
        let values = SelfProvingValues(size: 4096)
        let one = values.value(5, version: 1 << 32 | 1)
        let other = values.value(5, version: 1 << 32 | 2)
        let same = zip(one, other).dropFirst(SelfProvingValues.headerSize).count { $0 == $1 }
        // 1 in 256 bytes agree by chance: 16 of 4056; 60 would be 11 standard deviations more.
        #expect(same < 60)
    }

    @Test(arguments: sizes)
    func `a flipped bit is detected anywhere`(size: Int) {
        let values = SelfProvingValues(size: size)
        let data = values.value(7, version: version)
        let step = max(1, size / 97)
        let positions = Set(0..<min(size, 64)).union(stride(from: 0, to: size, by: step)).union([size - 1])
        for position in positions {
            var damaged = data
            damaged[position] ^= 0x10
            #expect(values.problem(in: damaged, of: 7) != nil, "a flipped bit at \(position) was not found")
        }
    }

    @Test
    func `a wrong byte in the body is reported with its offset`() {
        let values = SelfProvingValues(size: 4096)
        var data = values.value(7, version: version)
        data[1234] ^= 1
        #expect(values.problem(in: data, of: 7) == "a wrong byte at 1234")
    }

    @Test
    func `another key's value is detected`() {
        let values = SelfProvingValues(size: 4096)
        let other = values.value(8, version: version)
        #expect(values.problem(in: other, of: 7) == "the header of key 8")
    }

    @Test(arguments: [16, 40, 100, 2048, 4095])
    func `a value torn between two versions is detected`(position: Int) throws {
        let values = SelfProvingValues(size: 4096)
        let old = values.value(7, version: 1 << 32 | 1)
        let new = values.value(7, version: 1 << 32 | 2)
        let torn = new[..<position] + old[position...]
        let problem = try #require(values.problem(in: torn, of: 7))
        let offset = try #require(problem.split(separator: " ").last.flatMap { Int($0) })
        #expect(offset >= position)
    }

    @Test(arguments: [0, 1, 15, 16, 4095])
    func `a truncated value is detected`(length: Int) {
        let values = SelfProvingValues(size: 4096)
        let cut = values.value(7, version: version).prefix(length)
        #expect(values.problem(in: cut, of: 7) == "\(length) bytes instead of 4096")
    }

    @Test
    func `a value that is too long is detected`() {
        let values = SelfProvingValues(size: 4096)
        let long = values.value(7, version: version) + [0]
        #expect(values.problem(in: long, of: 7) == "4097 bytes instead of 4096")
    }

    @Test
    func `zeros and foreign bytes are detected`() {
        let values = SelfProvingValues(size: 4096)
        #expect(values.problem(in: Data(count: 4096), of: 7) != nil)
        #expect(values.problem(in: Data(count: 4096), of: 0) != nil)
        #expect(values.problem(in: Data(repeating: 0xa5, count: 4096), of: 7) != nil)
    }
}
