// SPDX-License-Identifier: Apache-2.0

import Platform

/// Sorts any number of lines by their keys, with sort(1), in constant memory.
///
/// If there are more than 32 MiB, sort uses temporary files in `$TMPDIR`, or else in /tmp.
struct ListSorter: ~Copyable {
    private static let pieceSize = 64 * 1024
    /// The byte that ends a record's key.
    ///
    /// Escaped keys do not contain it (see ``escaped(_:)``), so a key precedes all keys of which it is a prefix.
    private static let endOfKey: UInt8 = 1

    private var process: ChildProcess
    private var unsent = ""

    /// C: `pipe2`, `posix_spawnp`.
    init(isReversed: Bool) throws(Failure) {
        // If sort exits early, a write to it must fail instead of ending this process.
        Signal.brokenPipe.ignore()
        do throws(Errno) {
            process = try ChildProcess(
                starting: "sort",
                ["-z", "-S", "32M"] + (isReversed ? ["-r"] : []),
                environment: ["LC_ALL": "C"],
                searchesPath: true
            )
        } catch {
            throw Failure(.inputOutput, "ls: run sort(1): \(error): install it, or leave out --sort")
        }
    }

    /// Adds a line, which must not contain NUL; keys are compared as bytes.
    mutating func add(_ line: String, key: String) throws(Failure) {
        unsent += "\(Self.escaped(key))\u{1}\(line)\0"
        if unsent.utf8.count >= Self.pieceSize { try send() }
    }

    /// Passes the lines to `body` in order, at most `limit` of them.
    consuming func forEach(limit: Int, _ body: (Span<UInt8>) throws -> Void) throws {
        try send()
        process.closeInput()
        var unread: [UInt8] = []
        var left = limit
        while left > 0 {
            let piece = try doing("read from sort(1)") { () throws(Errno) in
                try process.output.readAvailable()
            }
            if piece.isEmpty { return try checkEnd() }
            unread += piece
            var start = 0
            while left > 0, let end = unread[start...].firstIndex(of: 0) {
                let line = unread[start..<end].drop { $0 != Self.endOfKey }.dropFirst()
                try body(unread.span.extracting(line.indices))
                start = end + 1
                left -= 1
            }
            unread.removeFirst(start)
        }
    }

    private mutating func send() throws(Failure) {
        do throws(Errno) {
            try process.send(unsent)
        } catch {
            try checkEnd()
            throw Failure(.inputOutput, "ls: write to sort(1): \(error): try again")
        }
        unsent.removeAll(keepingCapacity: true)
    }

    /// Throws if sort failed; sort itself has already reported the reason.
    private mutating func checkEnd() throws(Failure) {
        do throws(Errno) {
            if try process.wait() == .exited(0) { return }
        } catch {
            throw Failure(.inputOutput, "ls: wait for sort(1): \(error): try again")
        }
        throw Failure(.inputOutput, "ls: sort(1) failed: set $TMPDIR to a directory with free space")
    }

    /// Returns the key without NUL and ``endOfKey``, escaped so that the order of keys does not change.
    private static func escaped(_ key: String) -> String {
        guard key.utf8.contains(where: { $0 <= 2 }) else { return key }
        return key.unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.value > 2 { return text.unicodeScalars.append(scalar) }
            text += "\u{2}\(scalar.value)"
        }
    }
}
