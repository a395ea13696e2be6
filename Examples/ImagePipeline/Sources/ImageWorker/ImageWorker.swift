// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheHTTP
import Foundation
import Images

/// One of several processes that show the same pictures: `ImageWorker CACHE SIDE PROCESSES ROUND URL…`.
///
/// Waits until so many processes are there, asks for each picture at once, and prints a line for each step
/// and each picture: `STEP URL`, and where it came from, its URL, its size and the sum of its pixels.
@main enum ImageWorker {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 5, let side = Int(arguments[2]), let processes = Int(arguments[3]) else {
            throw CocoaError(.formatting)
        }
        let cache = try await SharedCache.open(at: arguments[1])
        let pipeline = ImagePipeline(
            cache: cache,
            http: HTTPCache(cache),
            // For as long as the test takes: it says itself when servers are to be asked again.
            terms: PutOptions(expires: .days(1), staleFor: .seconds(7 * 86_400)),
            onStep: { say("\($0.rawValue) \($1)") }
        )
        try await awaitOthers(processes, in: cache, round: arguments[4])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for url in arguments[5...] {
                group.addTask {
                    guard let hit = try await pipeline.picture(url, fitting: side) else { return }
                    let picture = hit.value
                    let sum = (picture.pixels ?? []).reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
                    let age = hit.isStale ? "stale" : hit.source.rawValue
                    say("\(age) \(url) \(picture.width)x\(picture.height) \(sum)")
                }
            }
            try await group.waitForAll()
        }
        await cache.close()
    }

    /// So that all begin together; where one has died, the others do after a minute.
    private static func awaitOthers(_ processes: Int, in cache: SharedCache, round: String) async throws {
        let key = "processes of round \(round)"
        let end = ContinuousClock.now + .seconds(60)
        var count = try await cache.increment(forKey: key)
        while count < processes, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(2))
            count = try await cache.increment(forKey: key, by: 0)
        }
    }
}

private func say(_ words: String) {
    FileHandle.standardOutput.write(Data((words + "\n").utf8))
}
