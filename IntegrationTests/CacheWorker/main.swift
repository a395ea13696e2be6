// SPDX-License-Identifier: Apache-2.0

// One of several processes of a test: works on a cache as instructed, and records each operation, until its standard input
// ends or it is killed. See WorkerOrder for the arguments.

import DiskCache
import Foundation
import Synchronization

guard let order = WorkerOrder(Array(CommandLine.arguments.dropFirst())) else {
    fatalError("usage: CacheWorker CACHE LOGS NUMBER ROLE SEED checked|unchecked")
}

var configuration = CacheConfiguration()
if ProcessInfo.processInfo.environment["DISKCACHE_METADATA"] == "sidecar" {
    configuration.metadataForm = .sidecar
}
configuration.checksGenerations = order.checksGenerations
let cache = try SharedCache(at: order.directory, configuration: configuration)

/// The flag that is set at the end of the input.
final class Stop: Sendable {
    let isSet = Atomic<Bool>(false)
}

let stop = Stop()
let threads = DispatchGroup()
for thread in 0..<order.role.threads {
    threads.enter()
    Thread.detachNewThread { @Sendable in
        do {
            let worker = try WorkerThread(order, thread: thread, cache: cache)
            try worker.run { stop.isSet.load(ordering: .relaxed) }
        } catch {
            FileHandle.standardError.write(Data("\(order.role) \(order.number): \(error)\n".utf8))
            exit(3)
        }
        threads.leave()
    }
}
_ = try FileHandle.standardInput.readToEnd()
stop.isSet.store(true, ordering: .relaxed)
threads.wait()
cache.close()
