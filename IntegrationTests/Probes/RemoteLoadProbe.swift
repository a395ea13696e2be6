// SPDX-License-Identifier: Apache-2.0

import DiskCacheRemote
import Foundation
import Platform
import TestSupport

/// A process of one of two machines that share values through servers which a test disturbs.
///
/// `remoteLoad DIRECTORY MACHINE AHEAD GETS URL…` uses the cache DIRECTORY/MACHINE, MACHINE being 0 or 1, with a
/// level for each URL, by a clock that is AHEAD seconds ahead, until all processes together have made GETS gets. It gets,
/// puts and removes random keys, and counts the results in the monitor in DIRECTORY. Every few thousand calls it opens the
/// cache again, sometimes with another mode of the servers.
struct RemoteLoadProbe {
    private let monitor: RemoteMonitor
    private let path: String
    private let levels: [String]
    private let ahead: TimeInterval
    private let gets: Int
    private var random = SystemRandomNumberGenerator()

    init(_ words: [String]) throws {
        guard words.count >= 5, let machine = Int(words[1]), let ahead = TimeInterval(words[2]),
            let gets = Int(words[3])
        else { exit(EX_USAGE) }
        monitor = try RemoteMonitor(in: words[0], machine: machine, gets: gets)
        path = "\(words[0])/\(machine)"
        levels = Array(words[4...])
        (self.ahead, self.gets) = (ahead, gets)
    }

    mutating func run() throws {
        while monitor[.gets] < gets {
            let cache = try open()
            for _ in 0..<Int.random(in: 500..<4000, using: &random) where monitor[.gets] < gets {
                step(cache)
            }
            cache.close()
        }
    }

    private mutating func open() throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.limits = CacheLimits(maximumSize: ByteCount(8 << 20))
        let ahead = ahead
        configuration.now = { Date(timeIntervalSinceNow: ahead) }
        var remote = CacheConfiguration.Remote(levels: levels.map { [CacheConfiguration.Remote.Server($0)] })
        switch Int.random(in: 0..<10, using: &random) {
        case 0: remote.mode = .off
        case 1: remote.mode = .read
        default: remote.mode = .readWrite
        }
        return try SharedCache(at: path, configuration: configuration, remote: remote)
    }

    private mutating func step(_ cache: SharedCache) {
        let key = Int.random(in: 0..<RemoteMonitor.keys, using: &random)
        do {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<8:
                guard let ticket = monitor.ticket() else { return }
                let value = Self.value(of: key, ticket)
                try monitor.change(key, to: ticket) { try cache.put(value, forKey: "\(key)") }
                monitor.add(.puts)
            case 8..<10:
                try monitor.change(key, to: nil) { try cache.remove(forKey: "\(key)") }
                monitor.add(.removals)
            default: try get(key, cache)
            }
        } catch {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            monitor.add(.failures)
        }
    }

    private func get(_ key: Int, _ cache: SharedCache) throws {
        let moment = monitor.moment
        let hit = try cache.get(forKey: "\(key)")
        monitor.add(.gets)
        guard let hit else { return }
        monitor.add(hit.source == .remote ? .remoteHits : .hits)
        let text = String(decoding: hit.value.prefix(20), as: UTF8.self)
        guard let ticket = text.split(separator: " ").first.flatMap({ UInt64($0) }),
            hit.value == Self.value(of: key, ticket)
        else { return monitor.add(.wrong) }
        if monitor.isRetired(ticket, at: moment) { return monitor.add(.returned) }
        try monitor.see(ticket, of: key)
    }

    /// Returns the value of a put: its ticket and key, repeated up to a length that depends on both.
    private static func value(of key: Int, _ ticket: UInt64) -> Data {
        let text = "\(ticket) \(key) "
        let length = 20 + Int((ticket &* 31 &+ UInt64(key)) % 3000)
        return Data(String(repeating: text, count: length / text.utf8.count + 1).utf8)
    }
}
