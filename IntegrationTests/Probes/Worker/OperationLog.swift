// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The log of one thread of a worker, in a file that survives if the worker is killed at any instruction.
///
/// The file is mapped into memory, so it contains each store as soon as the instruction has executed. A write is recorded
/// before it is attempted; its end is zero until it has returned.
///
/// ```
/// count (8 bytes), padding to 32; then for each operation: start  end  value  kind | key << 8 | tier << 32
/// ```
package struct OperationLog: ~Copyable {
    /// The kind of an operation.
    package enum Kind: UInt64, Sendable {
        case read = 1, miss, write, remove
        /// A value that a single-flight call found, or got from another call that computed it.
        case flight
        /// A value that was read and replaced in one atomic step.
        case replaced
        /// Bytes that are not a value of this key, which must never occur.
        case damaged
        /// A put that is published in the background; it ends when a later flush ends.
        case behind
        /// A write by a call that computed the value.
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
        /// The start in nanoseconds of CLOCK_MONOTONIC.
        package var start: UInt64
        /// The end, or zero if the operation has not returned.
        package var end: UInt64 = 0
    }

    private static let stride = 4
    private let words: UnsafeMutablePointer<UInt64>
    private let capacity: Int
    private var count = 0

    /// Maps a new file with room for `capacity` operations; only recorded operations take space.
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

    /// The current time in nanoseconds, on the clock of all entries.
    package static var now: UInt64 {
        nanoseconds(of: CLOCK_MONOTONIC)
    }

    /// Whether the operations of another step, at most one per key, might not fit.
    package var isFull: Bool { count + UniqueValues.keys.count > capacity }

    /// Records an operation, and returns its number for ``end(_:)``.
    @discardableResult
    package mutating func append(_ entry: Entry) -> Int {
        precondition(count < capacity, "the log is full")
        count += 1
        let place = words + count * Self.stride
        place[0] = entry.start
        place[1] = entry.end
        place[2] = entry.value
        place[3] = entry.kind.rawValue | UInt64(entry.key) << 8 | entry.tier.rawValue << 32
        // The count is written last, so that it never includes an incomplete entry of a killed process.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        words[0] = UInt64(count)
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        return count
    }

    /// Records that an operation has returned.
    package mutating func end(_ number: Int) {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        words[number * Self.stride + 1] = Self.now
    }

    /// Records that an operation has returned without an effect.
    package mutating func cancel(_ number: Int) {
        words[number * Self.stride + 3] = Kind.miss.rawValue
        end(number)
    }

    /// Returns the number of operations that a log contains now; zero if the log does not exist yet.
    package static func count(of path: String) -> Int {
        guard let file = FileHandle(forReadingAtPath: path),
            let data = try? file.read(upToCount: 8), data.count == 8
        else { return 0 }
        return data.withUnsafeBytes { Int($0.loadUnaligned(as: UInt64.self)) }
    }

    /// Returns all operations of a log, even if its process was killed.
    package static func entries(of path: String) throws -> [Entry] {
        let count = count(of: path)
        // A worker that was killed early leaves an empty file.
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

/// Returns the time of clock_gettime(2) in nanoseconds.
private func nanoseconds(of clock: clockid_t) -> UInt64 {
    var time = timespec()
    let result = clock_gettime(clock, &time)
    precondition(result == 0, "CLOCK_MONOTONIC exists on every Linux")
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
