// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The text format of `stats --prometheus`, checked by a parser of its grammar.
@Suite(.takesTurns) struct ExpositionTests {
    /// One metric with its samples.
    private struct Metric {
        var help = ""
        var type = ""
        var samples: [(labels: [String: String], value: Double)] = []
    }

    private struct Malformed: Error {
        let line: Substring
    }

    /// Parses an exposition by the grammar of version 0.0.4, and requires HELP and TYPE before all samples.
    private static func parse(_ text: String) throws -> [String: Metric] {
        var metrics: [String: Metric] = [:]
        guard text.hasSuffix("\n") else { throw Malformed(line: text.suffix(20)) }
        for line in text.split(separator: "\n") {
            if let match = line.wholeMatch(of: /# HELP ([a-z_:][a-z0-9_:]*) (.+)/) {
                guard metrics[String(match.1)] == nil else { throw Malformed(line: line) }
                metrics[String(match.1)] = Metric(help: String(match.2))
            } else if let match = line.wholeMatch(of: /# TYPE ([a-z_:]+) (counter|gauge)/) {
                guard metrics[String(match.1)]?.type == "" else { throw Malformed(line: line) }
                metrics[String(match.1)]?.type = String(match.2)
            } else if let match = line.wholeMatch(
                of: /([a-z_:]+)\{((?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)+)\} (\S+)/
            ) {
                guard let value = Double(match.3), metrics[String(match.1)]?.type.isEmpty == false else {
                    throw Malformed(line: line)
                }
                metrics[String(match.1)]?.samples.append((labels(match.2), value))
            } else {
                throw Malformed(line: line)
            }
        }
        return metrics
    }

    private static func labels(_ text: Substring) -> [String: String] {
        var labels: [String: String] = [:]
        for match in text.matches(of: /([a-z_]+)="((?:[^"\\]|\\["\\n])*)"/) {
            var value = ""
            var isEscaped = false
            for character in match.2 {
                if isEscaped { value.append(character == "n" ? "\n" : character) }
                if !isEscaped && character != "\\" { value.append(character) }
                isEscaped = !isEscaped && character == "\\"
            }
            labels[String(match.1)] = value
        }
        return labels
    }

    private let place: TemporaryDirectory
    private let cache: SharedCache

    init() throws {
        place = try TemporaryDirectory()
        cache = try SharedCache(at: place.path + "/cache")
    }

    private func exposition(directory: String = "/c") throws -> String {
        let present = cache.directory
        let totals = try #require(try present.totals())
        return Exposition(totals, try present.lastCollection(), directory: directory).text
    }

    @Test func `only counters end in total, and all metrics have help and samples`() throws {
        try cache.put("value", forKey: "key")
        try cache.directory.collect()
        let metrics = try Self.parse(exposition())
        #expect(metrics.count == 41)
        for (name, metric) in metrics {
            #expect(name.hasPrefix("diskcache_"))
            #expect((metric.type == "counter") == name.hasSuffix("_total"), "\(name)")
            #expect(metric.help.hasSuffix("."))
            #expect(!metric.samples.isEmpty && metric.samples.allSatisfy { $0.labels["directory"] == "/c" })
            #expect(Set(metric.samples.map(\.labels)).count == metric.samples.count, "\(name)")
        }
    }

    @Test func `the documentation lists each metric`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let file = root.appendingPathComponent("Sources/DiskCache/DiskCache.docc/Capacity.md")
        let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        try cache.directory.updateLimits { ($0.maximumSize, $0.maximumEntries) = (.gibibytes(1), 1000) }
        try cache.directory.collect()
        let metrics = try Self.parse(exposition())
        #expect(metrics["diskcache_limit_bytes"] != nil)
        for (name, metric) in metrics {
            let labels = Set(metric.samples.flatMap(\.labels.keys)).subtracting(["directory"])
            let row = rows.first { $0.hasPrefix("| `\(name)` | \(metric.type) | ") } ?? ""
            #expect(row.hasSuffix(" | \(metric.help) |"), "\(name)")
            #expect(labels.allSatisfy { row.contains("`\($0)`") }, "\(name)")
        }
    }

    @Test func `the metrics reflect operations and collections`() throws {
        try cache.put("value", forKey: "key")
        try cache.put("old", forKey: "expired", options: PutOptions(expires: .expired))
        #expect(try cache.get(forKey: "key") != nil)
        #expect(try cache.get(forKey: "absent") == nil)
        try cache.directory.collect()
        let metrics = try Self.parse(exposition())
        func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
            let labels = labels.merging(["directory": "/c"]) { $1 }
            return metrics["diskcache_" + name]?.samples.first { $0.labels == labels }?.value
        }
        #expect(value("hits_total", ["tier": "memory"]) == 1)
        #expect(value("hits_total", ["tier": "disk"]) == 0)
        #expect(value("misses_total") == 1)
        #expect(value("puts_total") == 2)
        #expect(value("written_bytes_total") == 8)
        #expect(value("collected_total", ["reason": "expired"]) == 1)
        #expect(value("collected_total", ["reason": "size"]) == 0)
        #expect(value("collections_total") == 1)
        #expect(value("entries") == 1)
        #expect(value("last_collection_complete") == 1)
        let start = try #require(value("counting_start_timestamp_seconds"))
        #expect(abs(start - Date.now.timeIntervalSince1970) < 3600)
    }

    @Test func `metrics of a missing collection or an uncounted usage are omitted`() throws {
        #expect(try !exposition().contains("last_collection"))
        // A control file that is recreated in a cache in use does not count the existing entries.
        try cache.put("value", forKey: "key")
        try FileManager.default.removeItem(atPath: cache.path + "/control")
        let other = try SharedCache(at: cache.path)
        let totals = try #require(try other.directory.totals())
        #expect(!totals.usage.isCounted)
        let metrics = try Self.parse(Exposition(totals, nil, directory: "/c").text)
        #expect(metrics["diskcache_entries"] == nil && metrics["diskcache_usage_bytes"] == nil)
        #expect(metrics["diskcache_puts_total"]?.samples.first?.value == 0)
    }

    @Test(arguments: ["/plain", "/qu\"ote", "/back\\slash\\n", "/line\nfeed", "/ünï 🙂", "/\\\"\n\\"])
    func `a directory's name is escaped so that it parses back`(directory: String) throws {
        let metrics = try Self.parse(exposition(directory: directory))
        #expect(metrics.values.allSatisfy { $0.samples.allSatisfy { $0.labels["directory"] == directory } })
        #expect(Exposition.escaped("a\\b\"c\nd") == #"a\\b\"c\nd"#)
    }

    @Test(.enabled(if: Promtool.path != nil, "promtool is not installed"))
    func `promtool accepts the metrics`() throws {
        try cache.put("value", forKey: "key")
        try cache.directory.collect()
        let run = try Promtool.check(exposition(directory: "/qu\"ote\\n\n"))
        #expect(run.status == 0 && run.output == "", "\(run.output)")
        // promtool does report errors in other texts.
        #expect(try Promtool.check("# TYPE a_total gauge\na_total 1\n").status != 0)
    }
}

/// The checker that comes with Prometheus.
private enum Promtool {
    static let path: String? = {
        let places = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return places.map { "\($0)/promtool" }.first(where: FileManager.default.isExecutableFile)
    }()

    static func check(_ text: String) throws -> (status: Int32, output: String) {
        let place = try TemporaryDirectory()
        try text.write(toFile: place.path + "/metrics", atomically: false, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(path))
        process.arguments = ["check", "metrics"]
        process.standardInput = FileHandle(forReadingAtPath: place.path + "/metrics")
        makeFile(place.path + "/output")
        process.standardOutput = FileHandle(forWritingAtPath: place.path + "/output")
        process.standardError = process.standardOutput
        try process.run()
        process.waitUntilExit()
        return (
            process.terminationStatus, try String(contentsOfFile: place.path + "/output", encoding: .utf8)
        )
    }
}
