// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Makes the calls of a cache in a process with a low resource limit: `limit CACHE DIRECTORY LIMIT BYTES WHEN`.
///
/// LIMIT is fsize, nofile or as; for `as`, BYTES are added to the current size. WHEN is before or after, relative to the
/// opening of the cache. Prints a line for each call: its name, and `ok`, `miss` or the error's code and number. Then the
/// probe lifts the limit; `leaked` reports how many more descriptors are open than before, and `healthy` whether
/// everything works again.
struct LimitProbe {
    private let path: String
    private let scratch: String
    private let limit: String
    private let bytes: rlim_t
    private let isBefore: Bool
    private let kind: __rlimit_resource_t
    private let small = Data(repeating: 7, count: 4096)
    private let large: Data
    private let other: Data
    private let file: String

    init(_ words: [String]) throws {
        guard words.count == 5, let bytes = rlim_t(words[3]) else { exit(EX_USAGE) }
        (path, scratch, limit, self.bytes, isBefore) = (
            words[0], words[1], words[2], bytes, words[4] == "before"
        )
        kind =
            switch limit {
            case "fsize": __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
            case "nofile": __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            default: __rlimit_resource_t(RLIMIT_AS.rawValue)
            }
        // For `as`, longer than the 64 MiB that malloc(3) may have reserved for a thread.
        let length = limit == "as" ? 80 << 20 : 4 << 20
        // Slices that do not begin at index 0, because a put of a slice needs memory.
        large = Data(repeating: 9, count: length + 1).dropFirst()
        other = Data(repeating: 8, count: length + 1).dropFirst()
        file = scratch + "/large"
        try large.write(to: URL(fileURLWithPath: file))
    }

    func run() throws {
        var configuration = CacheConfiguration()
        configuration.memory = .none
        configuration.janitor.isEnabled = false
        do {
            let first = try SharedCache(at: path, configuration: configuration)
            try first.put(small, forKey: "old")
            try first.put(large, forKey: "large-old")
            callAll(first, "warm")
        }
        Probes.say("limited")
        if isBefore { narrow() }
        let cache: SharedCache
        do {
            cache = try SharedCache(at: path, configuration: configuration)
        } catch {
            Probes.say("open \(error.code) \(error.errno ?? 0)")
            return
        }
        // Without a free descriptor, open descriptors can't be counted.
        let before = isBefore ? 0 : openDescriptors()
        if !isBefore {
            callAll(cache, "second")
            Probes.say("limited")
            narrow()
            // The library checks the limits of the process together with those of the directory.
            _ = try? cache.directory.limits()
        }
        callAll(cache, "limited")
        setLimit(nil)
        Probes.say("leaked \(max(0, openDescriptors() - before))")
        attempt("healthy") {
            try cache.put(large, forKey: "large-again")
            return try cache.get(forKey: "large-again")?.value == large && cache.directory.verify().isClean
        }
    }

    private func setLimit(_ wanted: rlim_t?) {
        var present = rlimit()
        getrlimit(kind, &present)
        present.rlim_cur = wanted ?? present.rlim_max
        precondition(setrlimit(kind, &present) == 0)
    }

    private func narrow() {
        guard limit == "as" else { return setLimit(bytes) }
        let pages = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
            .first
        setLimit((rlim_t(pages ?? "0") ?? 0) * 4096 + bytes)
    }

    /// Returns the number of open descriptors, without those of lock files, which the library keeps open.
    private func openDescriptors() -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        let paths = names.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
        }
        return paths.count { !$0.contains("/locks/") }
    }

    private func attempt(_ name: String, _ body: () throws -> Bool) {
        do {
            Probes.say("\(name) \(try body() ? "ok" : "miss")")
        } catch let error as CacheError {
            Probes.say("\(name) \(error.code) \(error.errno ?? 0)")
        } catch {
            Probes.say("\(name) other \(error)")
        }
    }

    private func callAll(_ cache: SharedCache, _ round: String) {
        attempt("put") {
            try cache.put(small + Data(round.utf8), forKey: "small"); return true
        }
        attempt("put-large") {
            try cache.put(round == "limited" ? other : large, forKey: "large-\(round)"); return true
        }
        attempt("put-file") {
            try cache.put(contentsOfFile: file, forKey: "file"); return true
        }
        attempt("put-if-absent") {
            _ = try cache.putIfAbsent(small + Data("absent \(round)".utf8), forKey: "absent-\(round)");
            return true
        }
        attempt("update") { try cache.update(forKey: "updated") { _ in .value(Data(round.utf8)) } != nil }
        attempt("put-behind") {
            try cache.put(Data(round.utf8), forKey: "behind", options: PutOptions(writing: .behind))
            return cache.flush()
        }
        attempt("increment") { try cache.increment(forKey: "number") > 0 }
        attempt("lock") {
            try cache.lock("name", within: .zero).unlock(); return true
        }
        attempt("get") { try cache.get(forKey: "old") != nil }
        attempt("get-large") { try cache.get(forKey: "large-old") != nil }
        attempt("contains") { try cache.contains(forKey: "old") }
        attempt("touch") { try cache.touch(forKey: "old") }
        attempt("set-expiration") { try cache.setExpiration(.days(1), forKey: "old") }
        attempt("get-file") { try cache.copyValue(forKey: "large-old", toFile: scratch + "/copy") != nil }
        attempt("value") {
            cache.value(forKey: "computed-\(round)", orCompute: { Data("x".utf8) }) == Data("x".utf8)
        }
        attempt("limits") {
            _ = try cache.directory.limits(); return true
        }
        attempt("remove") { try cache.remove(forKey: "small") }
        attempt("list") { try cache.entries().allSatisfy { (try? $0.get()) != nil } }
        attempt("statistics") { try cache.directory.statistics().entries > 0 }
        attempt("collect") {
            try cache.directory.collect(); return true
        }
        attempt("verify") { try cache.directory.verify().isClean }
    }
}
