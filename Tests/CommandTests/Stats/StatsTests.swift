// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import TestSupport
import Testing

@testable import DiskCache
@testable import DiskCacheCommand
@testable import Platform

/// The options of `stats`, and the text of its counts.
@Suite(.takesTurns) struct StatsTests {
    // MARK: Options

    private func arguments(_ words: [String]) throws -> Arguments {
        var arguments = try StatsCommand.parse(words.map { Array($0.utf8) }, directory: nil)
        try StatsCommand.check(&arguments)
        return arguments
    }

    @Test(arguments: [[], ["--quick"], ["--prometheus"], ["--reset", "--json"], ["--quick", "--json"]])
    func `each valid combination of options is accepted`(words: [String]) throws {
        _ = try arguments(words)
    }

    @Test(arguments: [("--watch", 1.0), ("--watch=2s", 2), ("--watch 2s", 2), ("-w500ms --json", 0.5)])
    func `the interval of watch needs no equals sign`(line: String, seconds: Double) throws {
        let words = line.split(separator: " ").map(String.init)
        #expect(try arguments(words).value("watch", as: StatsCommand.interval)?.inSeconds == seconds)
    }

    @Test(arguments: [
        ["--quick", "--watch"], ["--quick", "--reset"], ["--watch", "--prometheus"],
        ["--watch=1s", "--reset"],
        ["--prometheus", "--reset"], ["--prometheus", "--json"], ["--watch=0"], ["--watch=99ms"],
        ["--watch=soon"],
        ["--quick", "1s"], ["--watch", "1s", "2s"],
    ])
    func `conflicting options and invalid intervals are usage errors`(words: [String]) {
        #expect {
            _ = try arguments(words).value("watch", as: StatsCommand.interval)
        } throws: {
            ($0 as? Failure)?.status == .usage
        }
    }

    // MARK: Counts

    /// Returns a cache with known counts: 3 hits, 1 stale hit, 1 miss, 3 puts, 1 removal.
    private func cache() throws -> (SharedCache, TemporaryDirectory) {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        try cache.put("value", forKey: "a")
        try cache.put("value", forKey: "b")
        try cache.put(
            "old",
            forKey: "stale",
            options: PutOptions(expires: .expired, staleFor: .seconds(3600))
        )
        cache.memory.removeAll()
        for _ in 0..<3 { #expect(try cache.get(forKey: "a") != nil) }
        #expect(try cache.get(forKey: "stale", reading: ReadOptions(acceptsStale: true)) != nil)
        #expect(try cache.get(forKey: "absent") == nil)
        #expect(try cache.remove(forKey: "b"))
        return (cache, place)
    }

    @Test func `some rows are always shown, others only if their events happened`() throws {
        let (cache, place) = try cache()
        let rows = StatsCounter.rows(cache.directory.activity, nil)
        func total(_ name: String) -> String? { rows.first { $0.name == name }?.total }
        #expect(rows.prefix(3).map { $0.name } == ["hits", "  in memory", "  on disk"])
        #expect(total("hits") == "3" && total("  in memory") == "2" && total("  on disk") == "1")
        #expect(total("stale hits") == "1" && total("misses") == "1")
        #expect(total("hit ratio") == "80.0 %")
        #expect(total("read") == "8 B" && total("written") == "8 B")
        #expect(total("computations") == nil && total("collections") == nil && total("damaged") == nil)
        #expect(rows.allSatisfy { $0.rate.isEmpty })
        withExtendedLifetime(place) {}
    }

    @Test func `an interval's rates count only its operations`() throws {
        let (cache, place) = try cache()
        let before = cache.directory.activity
        for _ in 0..<5 { #expect(try cache.get(forKey: "a") != nil) }
        let interval = StatsInterval(activity: cache.directory.activity.since(before), seconds: 2)
        let rows = StatsCounter.rows(cache.directory.activity, interval)
        func rate(_ name: String) -> String? { rows.first { $0.name == name }?.rate }
        #expect(rate("hits") == "2.5" && rate("misses") == "0.0" && rate("hit ratio") == "100.0 %")
        #expect(rate("read") == "0 B")
        let rates = interval.perSecond
        #expect(rates["hits"] == 2.5 && rates["misses"] == 0 && rates["puts"] == 0)
        withExtendedLifetime(place) {}
    }

    @Test func `counts that were reset during an interval start at 0`() throws {
        let (cache, place) = try cache()
        let before = try #require(try cache.directory.totals()).activity
        #expect(try cache.directory.resetTotals())
        #expect(try cache.get(forKey: "a") != nil)
        let since = try #require(try cache.directory.totals()).activity.since(before)
        #expect(since.memoryHits == 1 && since.diskHits == 0 && since.puts == 0 && since.leftMemory.isEmpty)
        #expect(cache.directory.activity.puts == 3, "what this process did stays")
        withExtendedLifetime(place) {}
    }

    @Test func `the hit ratio is rounded down, and missing without a get`() throws {
        #expect(StatsCounter.percent(1) == "100.0 %")
        #expect(StatsCounter.percent(0.9999) == "99.9 %")
        #expect(StatsCounter.percent(0) == "0.0 %")
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        #expect(cache.directory.activity.hitRatio == nil)
        let rows = StatsCounter.rows(cache.directory.activity, nil)
        #expect(rows.first { $0.name == "hit ratio" }?.total == "-")
    }

    @Test func `a watch line has a cell for each column`() throws {
        let (cache, place) = try cache()
        let totals = try #require(try cache.directory.totals())
        let interval = StatsInterval(activity: totals.activity, seconds: 3)
        let now = Date(timeIntervalSince1970: 1_795_223_197)
        let line = StatsLine.text(totals, interval, now: now)
        let cells = line.split(separator: " ").map(String.init)
        #expect(cells.count == StatsLine.heading.split(separator: " ").count)
        #expect(line.count == StatsLine.heading.count)
        #expect(cells.prefix(6) == ["2026-11-21T01:06:37Z", "1.3", "0.3", "80", "1", "0.3"])
        withExtendedLifetime(place) {}
    }

    /// All counts have the maximum that is accepted, in a short interval.
    @Test func `forged counts are shown without an overflow`() throws {
        let (cache, place) = try cache()
        let interval = StatsInterval(activity: CacheActivity { _ in 1 << 56 }, seconds: 0.001)
        let rows = StatsCounter.rows(interval.activity, interval)
        func rate(_ name: String) -> String? { rows.first { $0.name == name }?.rate }
        let most = "922 337 203 685 477 580"
        #expect(rate("misses") == most && rate("removed by collections") == most)
        #expect(rate("read") == "8192.0 PiB")
        let totals = try #require(try cache.directory.totals())
        let cells = StatsLine.text(totals, interval, now: .now).split(separator: " ")
        #expect(cells.count == 13 && cells[2] == "922337203685477580.7", "\(cells)")
        #expect(StatsCounter.percent(Double(1 << 56)) == "922337203685477580.7 %")
        withExtendedLifetime(place) {}
    }

    // MARK: The last collection

    @Test func `a collection is described in one line, and with its details`() throws {
        let (cache, place) = try cache()
        #expect(StatsText.lastCollection(nil, now: .now) == "last collection: none yet\n")
        try cache.directory.collect()
        let last = try #require(try cache.directory.lastCollection())
        let line = StatsText.lastCollection(last, now: .now)
        #expect(line.hasPrefix("last collection: 0s ago by process \(CurrentProcess.identifier), took "))
        #expect(line.hasSuffix(", complete, removed nothing\n"))
        let text = LastCollectionText.text(last, now: last.began + 90)
        #expect(
            text.contains("\nend      complete\nscanned  everything\nremoved nothing\nleft: 2 keys, ")
        )
        #expect(text.contains("(1m 30s ago)"))
        withExtendedLifetime(place) {}
    }

    @Test func `a screen is clipped to the terminal's lines and columns`() {
        let text = "/a/long/path\nkeys   12\n漢字漢字\nlast\n"
        let whole = StatsWatch.screen(text, nil)
        #expect(
            whole == "\u{1B}[H/a/long/path\u{1B}[K\nkeys   12\u{1B}[K\n漢字漢字\u{1B}[K\nlast\u{1B}[K\n\u{1B}[J"
        )
        let small = StatsWatch.screen(text, Terminal.Size(rows: 4, columns: 6))
        #expect(small == "\u{1B}[H/a/lo…\u{1B}[K\nkeys …\u{1B}[K\n漢字…\u{1B}[K\n\u{1B}[J")
        // Control characters in a line are escaped.
        #expect(!StatsWatch.screen("\u{9B}2J\n", nil).contains("\u{9B}"))
    }
}
