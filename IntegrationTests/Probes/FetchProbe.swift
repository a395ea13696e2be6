// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheHTTP
import Foundation

/// Fetches the same URL as other processes: `fetch CACHE URL OUTPUT GO [STALE-IF-ERROR]`.
///
/// Prints "ready", waits until the file GO exists (unless GO is `-`), fetches URL into the file OUTPUT, and prints the
/// status, the length, the digest and the cache status; or "error" with its code and message.
enum FetchProbe {
    static func run(_ words: [String]) async throws {
        guard [4, 5].contains(words.count) else { exit(EX_USAGE) }
        do {
            let http = HTTPCache(try await SharedCache.open(at: words[0]))
            Probes.say("ready")
            while words[3] != "-", access(words[3], F_OK) != 0 {
                try await Task.sleep(for: .milliseconds(1))
            }
            var request = FetchRequest(words[1])
            request.output = .file(words[2])
            request.retries = 0
            if words.count == 5, let seconds = Int(words[4]) { request.staleIfError = .seconds(seconds) }
            let response = try await http.fetch(request)
            let parts = ["\(response.status)", "\(response.length)", response.digest ?? "-"]
            let status = response.cacheStatus.text(cache: "diskcache")
            Probes.say((parts + [status]).joined(separator: " "))
        } catch let error as FetchError {
            Probes.say("error \(error.code.rawValue) \(error.message)")
        } catch {
            Probes.say("error other \(error)")
        }
    }
}
