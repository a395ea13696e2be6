// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Glibc
import Synchronization

/// Asks for a key that is absent, together with the other processes; whoever must computes for a while.
func stampede(_ options: Options) throws {
    let cache = try SharedCache(
        at: options.directory,
        configuration: options.variant.configuration(isSynced: options.isSynced)
    )
    let computations = Mutex(0)
    var values = Values(size: options.size)
    let value = values.next(0)
    waitForDriver(options)
    let begin = now()
    let data = cache.value(forKey: "stampede") {
        usleep(UInt32(options.computeMilliseconds) * 1000)
        computations.withLock { $0 += 1 }
        return value
    }
    let end = now()
    var line = ResultLine(options)
    line.computed = computations.withLock { $0 }
    line.errs = Values.isRight(data, size: options.size, 0) ? 0 : 1
    line.wall_ns = end - begin
    line.t0 = begin
    line.t1 = end
    try line.write()
}
