// SPDX-License-Identifier: Apache-2.0

import Glibc
import Platform

/// The values that the processes of two machines have stored and seen, in a file that all of them map.
///
/// Each put has a ticket, which its value contains. A machine has seen a ticket if it has put the value, or a get there
/// has returned it. When a put or a removal of a key ends on a machine, all tickets that the machine had seen of the key
/// before it began are retired there: a get on that machine that begins later must not return them.
///
/// ```
/// word 0  the number of tickets
/// word 1  the number of retirements so far
/// word 2… the counts of a test (Count)
/// then for each machine, for each key, 16 words: the tickets that it has seen and not retired; 0 if unused
/// then for each machine, for each ticket, a word: 0, or the retirement of the ticket
/// ```
package final class RemoteMonitor {
    /// The counts of a test.
    package enum Count: Int, CaseIterable {
        case gets = 2
        case hits, remoteHits, puts, removals, failures
        /// Gets of bytes that no process has put, and gets of a retired ticket.
        case wrong, returned
    }

    package static let keys = 500
    private static let slots = 16
    private static let counts = 16
    private static let machines = 2

    /// The name of the file in its directory.
    static let name: RelativePath = "monitor"

    private let file: MappedFile
    private let locks: FileDescriptor
    private let mostTickets: Int
    private let machine: Int

    /// Opens the monitor for a machine, 0 or 1; creates it if it is missing.
    ///
    /// - Parameter gets: the number of gets of all processes; there are tickets for a quarter as many puts.
    package init(in directory: String, machine: Int, gets: Int) throws {
        let mostTickets = gets / 4 + 10_000
        let folder = try Directory(opening: directory)
        let flags: OpenFlags = [.readWrite, .create]
        let opened = try folder.open(Self.name, flags, mode: 0o600)
        let own = Self.keys * Self.slots + mostTickets
        let count = Self.counts + Self.machines * own
        try opened.allocate(count * 8)
        file = try MappedFile(mapping: opened, wordCount: count, isWritable: true)
        locks = consume opened
        (self.machine, self.mostTickets) = (machine, mostTickets)
    }

    private var words: MappedWords { file.words }

    private func slot(_ index: Int, of key: Int) -> Int {
        let own = Self.keys * Self.slots + mostTickets
        return Self.counts + machine * own + key * Self.slots + index
    }

    private func state(of ticket: UInt64) -> Int {
        slot(0, of: Self.keys) + Int(ticket)
    }

    package func add(_ count: Count) { words.count(1, at: count.rawValue) }

    package subscript(count: Count) -> Int { Int(words.load(count.rawValue)) }

    /// Returns the ticket of a new put; nil if there are no more.
    package func ticket() -> UInt64? {
        let ticket = words.add(1, at: 0) + 1
        return ticket < UInt64(mostTickets) ? ticket : nil
    }

    /// The number of retirements so far.
    package var moment: UInt64 { words.load(1) }

    /// Returns whether the ticket was retired at `moment` already.
    package func isRetired(_ ticket: UInt64, at moment: UInt64) -> Bool {
        let retirement = words.load(state(of: ticket))
        return retirement != 0 && retirement <= moment
    }

    /// Notes that a get has returned a ticket of a key.
    package func see(_ ticket: UInt64, of key: Int) throws {
        try withLock(of: key) {
            guard words.load(state(of: ticket)) == 0 else { return }
            var free: Int?
            for index in 0..<Self.slots {
                let present = words.load(slot(index, of: key))
                if present == ticket { return }
                if present == 0, free == nil { free = slot(index, of: key) }
            }
            // If there is no room, the ticket is never retired, and nothing is checked.
            if let free { words.store(ticket, at: free) }
        }
    }

    /// Changes a key while no other process of the machine does, and retires the tickets that the machine has seen before.
    ///
    /// If this process is killed meanwhile, nothing is retired.
    ///
    /// - Parameter ticket: the ticket of the put; nil for a removal.
    package func change(_ key: Int, to ticket: UInt64?, _ body: () throws -> Void) throws {
        try withLock(of: key) {
            let seen = (0..<Self.slots).map { words.load(slot($0, of: key)) }
            try body()
            let moment = words.add(1, at: 1) + 1
            for old in seen where old != 0 { words.store(moment, at: state(of: old)) }
            for index in 0..<Self.slots {
                // A get may have seen another ticket meanwhile.
                if seen[index] != 0 { words.store(0, at: slot(index, of: key)) }
            }
            if let ticket, let free = (0..<Self.slots).first(where: { words.load(slot($0, of: key)) == 0 }) {
                words.store(ticket, at: slot(free, of: key))
            }
        }
    }

    /// The kernel releases the lock if the process is killed.
    private func withLock(of key: Int, _ body: () throws -> Void) throws {
        let byte = UInt64(2 * (machine * Self.keys + key))
        while try !locks.tryLock(byte: byte) { sched_yield() }
        defer { try? locks.unlock(byte: byte) }
        try body()
    }
}
