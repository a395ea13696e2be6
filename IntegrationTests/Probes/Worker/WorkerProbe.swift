// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Synchronization

/// A worker: one of several processes of a test that use the same cache.
///
/// It works as instructed and records each operation, until its standard input ends or it is killed. For the arguments
/// see ``WorkerOrder``.
enum WorkerProbe {
    static func run(_ words: [String]) throws {
        guard let order = WorkerOrder(words) else {
            fatalError("usage: Probes worker CACHE LOGS NUMBER ROLE SEED checked|unchecked")
        }
        var configuration = CacheConfiguration()
        if ProcessInfo.processInfo.environment["DISKCACHE_METADATA"] == "sidecar" {
            configuration.metadataForm = .sidecar
        }
        configuration.checksGenerations = order.checksGenerations
        let cache = try SharedCache(at: order.directory, configuration: configuration)
        // Set when the standard input ends.
        let stop = Stop()
        let threads = DispatchGroup()
        for thread in 0..<order.role.threads {
            threads.enter()
            Thread.detachNewThread { @Sendable in
                do {
                    let worker = try WorkerThread(order, thread: thread, cache: cache)
                    try worker.run { stop.isSet }
                } catch {
                    FileHandle.standardError.write(Data("\(order.role) \(order.number): \(error)\n".utf8))
                    exit(3)
                }
                threads.leave()
            }
        }
        _ = try FileHandle.standardInput.readToEnd()
        stop.set()
        threads.wait()
        cache.close()
    }
}
