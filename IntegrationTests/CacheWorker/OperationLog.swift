// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// What a thread of a worker did, in a file that survives the death of the worker at any instruction.
///
/// The file is mapped, so what was stored in it is there from that instruction on, whatever happens to the
/// process. A write is noted before it is tried, with an end of zero until it has returned.
///
/// ```
/// count (8 bytes), padding to 32; then for each operation: start  end  value  kind | key << 8 | tier << 32
/// ```
package struct OperationLog: ~Copyable {
    /// What was done.
    package enum Kind: UInt64, Sendable {
        case read = 1, miss, write, remove
        /// A value that was found, or shared with whoever computed it, by a call that would have computed it.
        case flight
        /// A value was read and, in the same atomic step, replaced.
        case replaced
        /// A value that is none, or another key's: what must never be.
        case damaged
        /// A put that is published in the background; it ends when a flush after it has.
        case behind
        /// A write by a call that has computed the value.
        case computed
    }

    /// Where a value came from.
    package enum Tier: UInt64, Sendable {
        case none, disk, memory
    }

    /// One operation.
    package struct Entry: Sendable {
        package var kind: Kind
        package var key: Int
        package var value: UInt64 = 0
        package var tier = Tier.none
        /// CLOCK_MONOTONIC in nanoseconds.
        package var start: UInt64
        /// Zero: it has not returned.
        package var end: UInt64 = 0
    }

    private static let stride = 4
    private let words: UnsafeMutablePointer<UInt64>
    private let capacity: Int
    private var count = 0

    /// Maps a new file with room for so many operations, of which only those noted take space.
    package init(creating path: String, capacity: Int) throws {
        let size = (capacity + 1) * Self.stride * 8
        let number = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw CocoaError(.fileWriteUnknown) }
        defer { close(number) }
        guard ftruncate(number, off_t(size)) == 0,
            let address = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0),
            address != MAP_FAILED
        else { throw CocoaError(.fileWriteUnknown) }
        words = address.bindMemory(to: UInt64.self, capacity: size / 8)
        self.capacity = capacity
    }

    /// The present moment of the clock that all entries are in.
    package static var now: UInt64 {
        nanoseconds(of: CLOCK_MONOTONIC)
    }

    /// Whether there may be no room for the operations of one more step: those of all keys at most.
    package var isFull: Bool { count + UniqueValues.keys.count > capacity }

    /// Notes an operation; the number is for `end`.
    @discardableResult
    package mutating func append(_ entry: Entry) -> Int {
        precondition(count < capacity, "the log is full")
        count += 1
        let place = words + count * Self.stride
        place[0] = entry.start
        place[1] = entry.end
        place[2] = entry.value
        place[3] = entry.kind.rawValue | UInt64(entry.key) << 8 | entry.tier.rawValue << 32
        // The count last: a kill in between must not leave half an entry that counts.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        words[0] = UInt64(count)
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        return count
    }

    /// Notes that an operation has returned.
    package mutating func end(_ number: Int) {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        words[number * Self.stride + 1] = Self.now
    }

    /// Notes that an operation has returned without having done anything.
    package mutating func cancel(_ number: Int) {
        words[number * Self.stride + 3] = Kind.miss.rawValue
        end(number)
    }

    /// How many operations a log tells of so far; zero where there is no such log yet.
    package static func count(of path: String) -> Int {
        guard let file = FileHandle(forReadingAtPath: path),
            let data = try? file.read(upToCount: 8), data.count == 8
        else { return 0 }
        return data.withUnsafeBytes { Int($0.loadUnaligned(as: UInt64.self)) }
    }

    /// All operations of a log, also of one whose process was killed.
    package static func entries(of path: String) throws -> [Entry] {
        let count = count(of: path)
        // Also where its maker was killed before it had a size.
        if count == 0 { return [] }
        guard let file = FileHandle(forReadingAtPath: path),
            let data = try file.read(upToCount: (count + 1) * stride * 8),
            data.count == (count + 1) * stride * 8
        else { throw CocoaError(.fileReadCorruptFile) }
        return try data.withUnsafeBytes { bytes in
            let words = bytes.bindMemory(to: UInt64.self)
            var entries: [Entry] = []
            entries.reserveCapacity(count)
            for place in Swift.stride(from: stride, through: count * stride, by: stride) {
                let word = words[place + 3]
                guard let kind = Kind(rawValue: word & 0xff), let tier = Tier(rawValue: word >> 32) else {
                    throw CocoaError(.fileReadCorruptFile)
                }
                entries.append(
                    Entry(
                        kind: kind,
                        key: Int(word >> 8 & 0xff_ffff),
                        value: words[place + 2],
                        tier: tier,
                        start: words[place],
                        end: words[place + 1]
                    )
                )
            }
            return entries
        }
    }
}

/// clock_gettime(2) in nanoseconds.
private func nanoseconds(of clock: clockid_t) -> UInt64 {
    var time = timespec()
    let result = clock_gettime(clock, &time)
    precondition(result == 0, "CLOCK_MONOTONIC exists on every Linux")
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
