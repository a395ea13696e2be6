// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Requests the same value as other processes: `compute CACHE LOG GO MILLISECONDS [KEYS]`.
///
/// Waits until the file GO exists (unless GO is `-`), requests the value, and prints it. If this process computes the
/// value, it appends a line to LOG and takes MILLISECONDS. With KEYS, it requests that many values in one call, in random
/// order, appends a line for each value that it computes, and prints "done" if all values are right.
enum ComputeProbe {
    static func run(_ words: [String]) async throws {
        guard [4, 5].contains(words.count), let milliseconds = Int(words[3]) else { exit(EX_USAGE) }
        let cache = try await SharedCache.open(at: words[0])
        Probes.say("ready")
        while words[2] != "-", access(words[2], F_OK) != 0 {
            try await Task.sleep(for: .milliseconds(1))
        }
        let log = words[1]
        if words.count == 5, let count = Int(words[4]) {
            let isRight = try await values(count, in: cache, log, taking: milliseconds)
            return Probes.say(isRight ? "done" : "wrong values")
        }
        let data = try await cache.value(forKey: "key") {
            note(["x"], in: log)
            try await Task.sleep(for: .milliseconds(milliseconds))
            return Data("done".utf8)
        }
        Probes.say(String(decoding: data, as: UTF8.self))
    }

    /// Appends lines to the file with a single write.
    private static func note(_ lines: [String], in log: String) {
        let descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        let text = lines.map { $0 + "\n" }.joined()
        _ = write(descriptor, text, text.utf8.count)
        close(descriptor)
    }

    /// Requests values that equal their keys, in random order; returns whether all are right.
    private static func values(
        _ count: Int,
        in cache: SharedCache,
        _ log: String,
        taking milliseconds: Int
    ) async throws -> Bool {
        let keys = (0..<count).map { "key \($0)" }
        let values = try await cache.values(forKeys: keys.shuffled()) { missing in
            note(missing, in: log)
            try await Task.sleep(for: .milliseconds(milliseconds))
            return Dictionary(uniqueKeysWithValues: missing.map { ($0, Data($0.utf8)) })
        }
        return values == Dictionary(uniqueKeysWithValues: keys.map { ($0, Data($0.utf8)) })
    }
}
