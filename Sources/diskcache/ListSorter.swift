// SPDX-License-Identifier: Apache-2.0

import Platform

/// Puts lines in the order of their keys, any number of them in bounded memory.
///
/// What does not fit is written, in sorted runs, to a file without a name, and merged at the end. Where only the
/// first so many are wanted and fit, nothing is written. At a time there are in memory: ``budget`` bytes of lines and
/// keys with 16 bytes for each, 8 while they are put in order, and at the end one buffer of 64 KiB for each run.
struct ListSorter {
    /// 32 MiB: a million lines are four runs.
    static let usualBudget = 32 << 20

    private static let mergeBuffer = 64 * 1024

    private let budget: Int
    private let limit: Int
    private let isReversed: Bool
    /// Where the file is made when it is needed.
    private let place: String
    private var buffer: [UInt8] = []
    private var items: [Item] = []
    private var scratch: ScratchFile?
    /// Where in the file each run begins, and where the last ends.
    private var bounds = [0]

    /// A key in the buffer, with its line behind it.
    private struct Item {
        let start: Int
        let keyLength: UInt32
        let lineLength: UInt32
    }

    /// - Parameters:
    ///   - limit: how many are wanted.
    ///   - place: a directory for what does not fit.
    init(limit: Int, isReversed: Bool, place: String, budget: Int = usualBudget) {
        self.limit = limit
        self.isReversed = isReversed
        self.place = place
        self.budget = budget
    }

    /// Adds a line; keys are compared as bytes.
    mutating func add(_ line: String, key: [UInt8]) throws(Failure) {
        if limit == 0 { return }
        // What is not used takes no memory; grown as it fills it would take up to three times as much.
        if items.isEmpty { buffer.reserveCapacity(budget + budget / 8) }
        let item = Item(
            start: buffer.count,
            keyLength: UInt32(key.count),
            lineLength: UInt32(line.utf8.count)
        )
        buffer += key
        buffer += line.utf8
        items.append(item)
        if buffer.count + items.count * MemoryLayout<Item>.size >= budget { try makeRoom() }
    }

    /// How many runs were written.
    var runs: Int { bounds.count - 1 }

    /// Hands the lines to `body` in their order, up to the limit.
    mutating func forEach(_ body: (Span<UInt8>) throws -> Void) throws {
        sort()
        guard scratch != nil else {
            for item in items {
                let start = item.start + Int(item.keyLength)
                try body(buffer.span.extracting(start..<start + Int(item.lineLength)))
            }
            return
        }
        try writeRun()
        buffer = []
        items = []
        try merge(body)
    }

    // MARK: Runs

    private mutating func makeRoom() throws(Failure) {
        let count = items.count
        sort()
        // Nothing would come of it.
        if items.count == count { return try writeRun() }
        compact()
        // More than half would make this happen again soon.
        if buffer.count + items.count * MemoryLayout<Item>.size >= budget / 2 { try writeRun() }
    }

    /// Puts the items in order, and drops those that are over the limit.
    private mutating func sort() {
        let (buffer, isReversed) = (buffer, isReversed)
        items.sort { left, right in
            let order = Self.compare(
                buffer.span.extracting(left.start..<left.start + Int(left.keyLength)),
                buffer.span.extracting(right.start..<right.start + Int(right.keyLength))
            )
            return isReversed ? order > 0 : order < 0
        }
        if items.count > limit { items.removeLast(items.count - limit) }
    }

    /// Takes what was dropped out of the buffer.
    private mutating func compact() {
        var kept: [UInt8] = []
        items = items.map { item in
            let start = kept.count
            kept += buffer[item.start..<item.start + Int(item.keyLength) + Int(item.lineLength)]
            return Item(start: start, keyLength: item.keyLength, lineLength: item.lineLength)
        }
        buffer = kept
    }

    /// Each item as the lengths of key and line, 4 bytes each, and both.
    private mutating func writeRun() throws(Failure) {
        if items.isEmpty { return }
        do throws(Errno) {
            try writeItems()
        } catch {
            throw failure(error)
        }
        buffer.removeAll(keepingCapacity: true)
        items.removeAll(keepingCapacity: true)
    }

    private func failure(_ error: Errno) -> Failure {
        Failure(
            error == .noSpace ? .cannotCreate : .inputOutput,
            "sort the list in \(place): \(error): set $TMPDIR to a directory with room"
        )
    }

    private mutating func writeItems() throws(Errno) {
        if scratch == nil { scratch = try ScratchFile(in: place) }
        var bytes: [UInt8] = []
        var end = bounds[bounds.count - 1]
        for (index, item) in items.enumerated() {
            for length in [item.keyLength, item.lineLength] {
                for shift in [0, 8, 16, 24] {
                    bytes.append(UInt8(truncatingIfNeeded: length >> UInt32(shift)))
                }
            }
            bytes += buffer[item.start..<item.start + Int(item.keyLength) + Int(item.lineLength)]
            guard bytes.count >= Self.mergeBuffer || index + 1 == items.count else { continue }
            try scratch?.descriptor.writeAll(bytes.span)
            end += bytes.count
            bytes.removeAll(keepingCapacity: true)
        }
        bounds.append(end)
    }

    // MARK: Merging

    private func merge(_ body: (Span<UInt8>) throws -> Void) throws {
        var readers = (0..<runs).map { RunReader(bounds[$0]..<bounds[$0 + 1], size: Self.mergeBuffer) }
        for run in readers.indices { try advance(&readers[run]) }
        var left = limit
        while left > 0, let first = firstReader(readers) {
            let line = readers[first].line
            try body(line.span)
            left -= 1
            try advance(&readers[first])
        }
    }

    private func advance(_ reader: inout RunReader) throws(Failure) {
        do throws(Errno) {
            try reader.advance { (count, offset) throws(Errno) in
                try scratch?.descriptor.read(count, at: offset) ?? []
            }
        } catch {
            throw failure(error)
        }
    }

    /// Of some hundred runs at most, so that looking at each is cheap beside making the line.
    private func firstReader(_ readers: [RunReader]) -> Int? {
        var first: Int?
        for index in readers.indices where !readers[index].isAtEnd {
            guard let best = first else {
                first = index
                continue
            }
            let (key, least) = (readers[index].key, readers[best].key)
            let order = Self.compare(key.span, least.span)
            if isReversed ? order > 0 : order < 0 { first = index }
        }
        return first
    }

    private static func compare(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        let count = min(left.count, right.count)
        var index = 0
        while index < count {
            if left[index] != right[index] { return left[index] < right[index] ? -1 : 1 }
            index += 1
        }
        return left.count - right.count
    }
}

/// Reads one run from its beginning to its end, through a buffer.
private struct RunReader {
    private var rest: Range<Int>
    private let size: Int
    private var buffer: [UInt8] = []
    private var position = 0
    private(set) var key: [UInt8] = []
    private(set) var line: [UInt8] = []
    private(set) var isAtEnd = false

    init(_ place: Range<Int>, size: Int) {
        rest = place
        self.size = size
    }

    /// Goes on to the next item; `read` reads so many bytes at an offset.
    mutating func advance(_ read: (Int, Int) throws(Errno) -> [UInt8]) throws(Errno) {
        if position == buffer.count, rest.isEmpty {
            isAtEnd = true
            return
        }
        let lengths = Array(try take(8, read))
        let keyLength = Self.number(lengths[0..<4])
        let lineLength = Self.number(lengths[4..<8])
        key = Array(try take(keyLength, read))
        line = Array(try take(lineLength, read))
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
        bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func take(
        _ count: Int,
        _ read: (Int, Int) throws(Errno) -> [UInt8]
    ) throws(Errno) -> ArraySlice<UInt8> {
        while buffer.count - position < count {
            let piece = try read(min(size, rest.count), rest.lowerBound)
            // A file of ours that nobody else has does not get shorter.
            if piece.isEmpty { throw .inputOutput }
            buffer.removeFirst(position)
            position = 0
            buffer += piece
            rest = rest.lowerBound + piece.count..<rest.upperBound
        }
        position += count
        return buffer[position - count..<position]
    }
}
