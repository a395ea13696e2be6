// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

// One of several processes that request the same value: `ComputeProbe CACHE LOG GO MILLISECONDS [KEYS]`.
//
// It waits until the file GO exists (unless that is `-`), requests the value, and prints it. If it computes the value, it
// appends a line to LOG and takes the given time. With KEYS it requests that many values in one call, in a random order,
// appends a line for each that it computes, and prints "done" if all are right.

let arguments = CommandLine.arguments
guard [5, 6].contains(arguments.count), let milliseconds = Int(arguments[4]) else { exit(EX_USAGE) }

/// Appends lines to the file in one write.
@Sendable func note(_ lines: [String], in log: String) {
    let descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    let text = lines.map { $0 + "\n" }.joined()
    _ = write(descriptor, text, text.utf8.count)
    close(descriptor)
}

/// Requests values that equal their keys, in a random order, and returns whether all are right.
func values(
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

do {
    let cache = try await SharedCache.open(at: arguments[1])
    // `print` buffers when standard output is a pipe.
    FileHandle.standardOutput.write(Data("ready\n".utf8))
    while arguments[3] != "-", access(arguments[3], F_OK) != 0 {
        try await Task.sleep(for: .milliseconds(1))
    }
    let log = arguments[2]
    if arguments.count == 6, let count = Int(arguments[5]) {
        let isRight = try await values(count, in: cache, log, taking: milliseconds)
        print(isRight ? "done" : "wrong values")
        exit(EXIT_SUCCESS)
    }
    let data = try await cache.value(forKey: "key") {
        note(["x"], in: log)
        try await Task.sleep(for: .milliseconds(milliseconds))
        return Data("done".utf8)
    }
    print(String(decoding: data, as: UTF8.self))
} catch {
    print("\(error)")
    exit(EXIT_FAILURE)
}
