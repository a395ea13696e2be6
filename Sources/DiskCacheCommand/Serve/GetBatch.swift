// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache get --batch`: many values in one call, each after a line with its length.
enum GetBatch {
    /// The size below which a value takes one read and no separate write.
    private static let smallSize = 64 * 1024

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "no KEY with --batch")
        let scope = try arguments.scope()
        // Before any input is read, because a replacement program would not receive it.
        arguments.shareIfConfigured()
        let cache = try arguments.openExistingCache(sharing: true)
        let separator: UInt8 = arguments.has("null") ? 0 : UInt8(ascii: "\n")
        let reading = ReadOptions(acceptsStale: arguments.has("stale"))
        var input = LineInput(of: "get", separator: separator)
        var status = ExitStatus.done
        try Output.toStandardOutput { output in
            while let line = try next(&input, flushing: &output) {
                // Two keys with invalid UTF-8 could become the same key.
                guard let name = String(validating: line, as: UTF8.self) else {
                    throw Failure.usage("get: a key is not valid UTF-8: all must be")
                }
                try arguments.check(name)
                let isFound =
                    try cache.map { try write(name, in: scope, of: $0, reading, to: &output) } ?? false
                guard !isFound else { continue }
                try output.writeRaw(JSON.line(["key": name, "found": false] as JSON.Object).utf8Span.span)
                status = .miss
            }
        }
        return status
    }

    private static func next(_ input: inout LineInput, flushing output: inout Output) throws -> Data? {
        do {
            return try input.line(flushing: &output)
        } catch is LineInput.TooLong {
            let most = LineInput.longestLine
            let advice = "end each with a newline, or, with --null, with a NUL"
            throw Failure.usage("get: a key is longer than \(most) bytes: \(advice)")
        }
    }

    /// Writes a value of any length in constant memory; returns false for a miss.
    ///
    /// - Parameters:
    ///   - name: The key without the scope, as repeated in the answer.
    ///   - scope: The prefix of the key.
    private static func write(
        _ name: String,
        in scope: String,
        of cache: SharedCache,
        _ reading: ReadOptions,
        to output: inout Output
    ) throws -> Bool {
        let key = scope + name
        let found: Void? = try cache.withDescriptor(forKey: key, reading: reading) { number, entry in
            let head: JSON.Object = ["key": name, "found": true, "length": entry.size]
            try output.writeRaw(JSON.line(head).utf8Span.span)
            if entry.size < smallSize {
                let value = try FileDescriptor.borrowing(number) { (file) throws(Errno) in
                    try file.readAvailable()
                }
                return try output.writeRaw(value.span)
            }
            try output.flush()
            try FileDescriptor.duplicate(Terminal.standardOutput)
                .copyAll(from: FileDescriptor.duplicate(number))
        }
        return found != nil
    }
}
