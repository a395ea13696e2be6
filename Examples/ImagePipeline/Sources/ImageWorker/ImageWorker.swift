// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Images

/// One of several processes that show the same pictures: `ImageWorker CACHE PICTURES SIDE PROCESSES`.
///
/// Waits until so many processes are there, asks for each file of a directory at once, and prints a line for
/// each step and each picture.
@main enum ImageWorker {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let side = Int(arguments[3]), let processes = Int(arguments[4]) else {
            throw CocoaError(.formatting)
        }
        let directory = arguments[2]
        let cache = try await SharedCache.open(at: arguments[1])
        let pipeline = ImagePipeline(cache: cache, onStep: { say("\($0.rawValue) \($1)") }) { name in
            try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))
        }
        try await awaitOthers(processes, in: cache)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for name in names {
                group.addTask {
                    guard let hit = try await pipeline.picture(name, fitting: side) else { return }
                    let picture = hit.value
                    let sum = (picture.pixels ?? []).reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
                    say("\(hit.source.rawValue) \(name) \(picture.width)x\(picture.height) \(sum)")
                }
            }
            try await group.waitForAll()
        }
        await cache.close()
    }

    /// So that all begin together; where one has died, the others do after a minute.
    private static func awaitOthers(_ processes: Int, in cache: SharedCache) async throws {
        let end = ContinuousClock.now + .seconds(60)
        var count = try await cache.increment(forKey: "processes")
        while count < processes, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(2))
            count = try await cache.increment(forKey: "processes", by: 0)
        }
    }
}

private func say(_ words: String) {
    FileHandle.standardOutput.write(Data((words + "\n").utf8))
}
