// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

// One of several processes that want the same value: `ComputeProbe CACHE LOG GO MILLISECONDS`.
//
// It waits until the file GO exists (unless that is `-`), asks for the value, and prints it. If it computes,
// it adds a line to LOG and takes that long.

let arguments = CommandLine.arguments
guard arguments.count == 5, let milliseconds = Int(arguments[4]) else { exit(EX_USAGE) }
do {
    let cache = try await SharedCache.open(at: arguments[1])
    // Not by print, which holds lines back in a pipe.
    FileHandle.standardOutput.write(Data("ready\n".utf8))
    while arguments[3] != "-", access(arguments[3], F_OK) != 0 {
        try await Task.sleep(for: .milliseconds(1))
    }
    let log = arguments[2]
    let data = try await cache.value(forKey: "key") {
        let descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        _ = write(descriptor, "x\n", 2)
        close(descriptor)
        try await Task.sleep(for: .milliseconds(milliseconds))
        return Data("done".utf8)
    }
    print(String(decoding: data, as: UTF8.self))
} catch {
    print("\(error)")
    exit(EXIT_FAILURE)
}
