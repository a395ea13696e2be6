// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The threads of one process that work on one cache.
struct Crew {
    private let options: Options

    init(_ options: Options) {
        self.options = options
    }

    func run() throws {
        let cache = try SharedCache(
            at: options.directory,
            configuration: options.variant.configuration(isSynced: options.isSynced)
        )
        let keys = Keys.all(Worker.keyCount(options))
        var line = ResultLine(options)
        let result = options.threads == 1 ? try alone(cache, keys) : try together(cache, keys)
        // What waits to be published is no part of what the calls took, but must not be lost.
        cache.flush()
        line.set(result, withHistogram: options.hasHandshake)
        if options.threads > 1 { line.mode = "threads" }
        try line.write()
    }

    private func alone(_ cache: SharedCache, _ keys: [String]) throws -> Measurement {
        var worker = Worker(options, cache, keys, index: options.process, of: options.processes)
        try worker.prepare()
        waitForDriver(options)
        return worker.run()
    }

    private func together(_ cache: SharedCache, _ keys: [String]) throws -> Measurement {
        let gate = Gate(threads: options.threads + 1)
        let threads = (0..<options.threads).map { [options] index in
            Thread {
                var worker = Worker(options, cache, keys, index: index, of: options.threads)
                let preparation = Result { try worker.prepare() }
                gate.wait()
                gate.wait()
                return preparation.map { worker.run() }
            }
        }
        gate.wait()
        waitForDriver(options)
        gate.wait()
        var result = Measurement()
        for thread in threads { result.merge(try thread.join().get()) }
        return result
    }
}
