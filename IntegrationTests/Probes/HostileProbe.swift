// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport

/// Makes every call of the library on caches that contain hostile files: `hostile TEMPLATE SCRATCH CASE…`.
///
/// TEMPLATE is a cache as described by `HostileTemplate`; SCRATCH is a directory for copies. Each CASE is the index of an
/// element of `HostileCase.all`, or -1 for no damage. With the suffix "/open" the damage is done while the cache is open,
/// with "/closed" before it is opened; without a suffix both are tested, each in a separate cache. Before each call, the
/// probe prints a line that names it, and after it a line with the outcome; so if the process is killed, its output shows
/// the fatal call.
enum HostileProbe {
    static func run(_ words: [String]) throws {
        for word in words.dropFirst(2) {
            let parts = word.split(separator: "/")
            guard let number = parts.first.flatMap({ Int($0) }) else {
                fatalError("usage: TEMPLATE SCRATCH CASE…")
            }
            let hostile = number < 0 ? HostileCase.none : HostileCase.all[number]
            for opensFirst in [false, true] where parts.count == 1 || opensFirst == (parts[1] == "open") {
                Probes.say("case\t\(number)\t\(opensFirst)")
                try run(hostile, opensFirst: opensFirst, words[0], "\(words[1])/\(number)-\(opensFirst)")
            }
        }
    }

    fileprivate static func call(_ name: String, _ body: () throws -> String) {
        Probes.say("call\t\(name)")
        do {
            Probes.say("end\t\(try body())")
        } catch let error as CacheError {
            Probes.say("end\t\(error.code)\t\(error.message)")
        } catch {
            Probes.say("end\tUNTYPED \(error)")
        }
    }

    private static func copy(_ template: String, _ directory: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/cp")
        process.arguments = ["-a", template, directory]
        try process.run()
        process.waitUntilExit()
        for suffix in [".outside", ".outside.d"] {
            try FileManager.default.copyItem(atPath: template + suffix, toPath: directory + suffix)
        }
    }

    private static func run(_ hostile: HostileCase, opensFirst: Bool, _ template: String, _ directory: String)
        throws
    {
        try copy(template, directory)
        defer {
            for suffix in ["", ".outside", ".outside.d", ".copy"] {
                try? FileManager.default.removeItem(atPath: directory + suffix)
            }
        }
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        if !opensFirst { try hostile.apply(in: directory) }
        var cache: SharedCache?
        call("open") {
            cache = try SharedCache(at: directory, configuration: configuration)
            return "done"
        }
        if opensFirst { try hostile.apply(in: directory) }
        if let cache { HostileCalls(cache: cache).run() }
        call("outside") {
            let names = try FileManager.default.contentsOfDirectory(atPath: directory + ".outside.d")
            let contents = try String(contentsOfFile: directory + ".outside", encoding: .utf8)
            return names.isEmpty && contents == "outside" ? "untouched" : "WRONG"
        }
    }
}

/// The calls to make on a cache, in order.
private struct HostileCalls {
    let cache: SharedCache
    let values = HostileTemplate.values

    func run() {
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            HostileProbe.call("get") { outcome(try cache.get(forKey: key)?.value, value) }
            HostileProbe.call("contains") { "\(try cache.contains(forKey: key))" }
            HostileProbe.call("entry") { try cache.entry(forKey: key) == nil ? "none" : "some" }
            HostileProbe.call("touch") { "\(try cache.touch(forKey: key))" }
            HostileProbe.call("setExpiration") { "\(try cache.setExpiration(.days(1), forKey: key))" }
            HostileProbe.call("copyValue") {
                let path = cache.path + ".copy"
                guard try cache.copyValue(forKey: key, toFile: path) != nil else { return "none" }
                return outcome(try Data(contentsOf: URL(fileURLWithPath: path)), value)
            }
            HostileProbe.call("value") {
                outcome(cache.value(forKey: key) { Data(value.utf8) }, value)
            }
            HostileProbe.call("get again") { outcome(try cache.get(forKey: key)?.value, value) }
        }
        HostileProbe.call("lock") {
            try cache.lock("name", within: .zero).unlock()
            return "done"
        }
        HostileProbe.call("increment") { "\(try cache.increment(forKey: "number"))" }
        HostileProbe.call("entries") {
            "\(try cache.entries().reduce(into: 0) { if case .success = $1 { $0 += 1 } })"
        }
        HostileProbe.call("statistics") { "\(try cache.directory.statistics().entries)" }
        HostileProbe.call("totals") { try cache.directory.totals() == nil ? "none" : "some" }
        HostileProbe.call("lastCollection") { try cache.directory.lastCollection() == nil ? "none" : "some" }
        HostileProbe.call("removals") { try cache.directory.removals() == nil ? "none" : "some" }
        HostileProbe.call("limits") { "\(try cache.directory.limits().eventLogSize?.bytes ?? 0)" }
        HostileProbe.call("computing") {
            try cache.directory.explanation(forKey: "key").computedBy == nil ? "none" : "some"
        }
        HostileProbe.call("gc") { "\(try cache.directory.collect().isComplete)" }
        HostileProbe.call("verify") { "\(try cache.directory.verify().isClean)" }
        HostileProbe.call("removeAll tagged") {
            try cache.removeAll(.tagged("tag"))
            return "done"
        }
        HostileProbe.call("expireAll") {
            try cache.expireAll(.prefix("oth"), staleFor: .seconds(60))
            return "done"
        }
        HostileProbe.call("put") {
            try cache.put(Data("value".utf8), forKey: "key")
            return outcome(try cache.get(forKey: "key")?.value, "value")
        }
        HostileProbe.call("put behind") {
            try cache.put(Data("behind".utf8), forKey: "behind", options: PutOptions(writing: .behind))
            return "\(cache.flush(within: .seconds(5)))"
        }
        HostileProbe.call("update limits") {
            try cache.directory.updateLimits { $0.maximumAge = .seconds(1_000_000) }
            return "done"
        }
        var isRemoved = false
        HostileProbe.call("remove") {
            let wasThere = try cache.remove(forKey: "other")
            isRemoved = true
            return "\(wasThere)"
        }
        HostileProbe.call("removed") {
            try !isRemoved || cache.get(forKey: "other") == nil ? "none" : "WRONG"
        }
        HostileProbe.call("removeAll") {
            try cache.removeAll()
            return try cache.get(forKey: "key") == nil ? "none" : "WRONG"
        }
        HostileProbe.call("close") { "\(cache.close().isComplete)" }
    }

    private func outcome(_ found: Data?, _ value: String) -> String {
        guard let found else { return "none" }
        return found == Data(value.utf8) ? "right" : "WRONG"
    }
}
