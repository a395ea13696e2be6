// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheHTTP
import Foundation

// One of several processes that fetch: `FetchProbe CACHE URL OUTPUT GO [STALE-IF-ERROR]`.
//
// It prints "ready", waits until the file GO exists (unless that is `-`), fetches URL into the file OUTPUT, and prints the
// status, the length, the digest and the cache status; or "error" with its code and its message.

let arguments = CommandLine.arguments
guard [5, 6].contains(arguments.count) else { exit(EX_USAGE) }

do {
    let http = HTTPCache(try await SharedCache.open(at: arguments[1]))
    // `print` buffers when standard output is a pipe.
    FileHandle.standardOutput.write(Data("ready\n".utf8))
    while arguments[4] != "-", access(arguments[4], F_OK) != 0 {
        try await Task.sleep(for: .milliseconds(1))
    }
    var request = FetchRequest(arguments[2])
    request.output = .file(arguments[3])
    request.retries = 0
    if arguments.count == 6, let seconds = Int(arguments[5]) { request.staleIfError = .seconds(seconds) }
    let response = try await http.fetch(request)
    let words = ["\(response.status)", "\(response.length)", response.digest ?? "-"]
    print((words + [response.cacheStatus.text(cache: "diskcache")]).joined(separator: " "))
} catch let error as FetchError {
    print("error \(error.code.rawValue) \(error.message)")
} catch {
    print("error other \(error)")
}
