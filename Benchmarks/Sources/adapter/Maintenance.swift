// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// Times opening a directory and the first get.
func openFirst(_ options: Options) throws {
    let index = Int(options.seed &* 7919 % UInt64(options.count))
    let key = Keys.key(index)
    let configuration = options.variant.configuration(isSynced: options.isSynced)
    waitForDriver(options)
    let begin = now()
    let cache = try SharedCache(at: options.directory, configuration: configuration)
    let opened = now()
    let hit = try cache.get(forKey: key)
    let end = now()
    var line = ResultLine(options)
    line.ops = 1
    line.open_ns = opened - begin
    line.first_get_ns = end - opened
    line.p50_ns = Double(end - begin)
    line.ok = hit.map { Values.isRight($0.value, size: options.size, index) } == true ? 1 : 0
    try line.write()
}

/// Times a collection with nothing to do, one that trims to a share of the entries, or listing them all.
func maintain(_ options: Options) throws {
    let cache = try SharedCache(
        at: options.directory,
        configuration: options.variant.configurationForMaintenance()
    )
    var line = ResultLine(options)
    waitForDriver(options)
    let begin = now()
    if options.operation == .list {
        line.entries = try list(cache)
        line.removed = 0
    } else {
        var request = CollectionOptions()
        if options.operation == .gc { request.maximumEntries = Int(Double(options.count) * options.keep) }
        let report = try cache.directory.collect(request)
        let removed = report.removed.filter { $0.key != .orphan && $0.key != .staleTemporary }
        line.removed = removed.reduce(0) { $0 + $1.value.count }
        line.entries = report.entries.count + (line.removed ?? 0)
    }
    let end = now()
    let seconds = Double(end - begin) / 1e9
    let entries = line.entries ?? 0
    line.ops = UInt64(entries)
    line.errs = 0
    line.seconds = seconds
    line.entries_per_s = Double(entries) / seconds
    line.ops_per_s = line.entries_per_s
    line.p50_ns = Double(end - begin) / Double(max(1, entries))
    line.t0 = begin
    line.t1 = end
    try line.write()
}

private func list(_ cache: SharedCache) throws -> Int {
    var count = 0
    for entry in try cache.entries() {
        _ = try entry.get()
        count += 1
    }
    return count
}
