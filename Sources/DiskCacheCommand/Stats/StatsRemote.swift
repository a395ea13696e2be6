// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The remote stores in the output of `stats`.
extension CacheActivity.Remote {
    /// A row for each server, in the columns of `stats`, and a row for the number of pending uploads.
    var rows: [[String]] {
        if servers.isEmpty { return [] }
        return [["remote stores", "", ""]]
            + servers.flatMap { server in
                [["  " + server.name.escaped, Self.words(breaker: server.breaker), ""]]
                    + (server.latency.map { Self.rows($0) } ?? [])
            }
            + [["  not sent yet", Quantity.grouped(waiting), ""]]
    }

    private static func words(breaker: String) -> String {
        switch breaker {
        case "closed": "in use"
        case "open": "not in use"
        case "probing": "probing"
        default: breaker
        }
    }

    private static func rows(_ latency: Latency) -> [[String]] {
        [
            ["    median", text(latency.median), ""],
            ["    99th percentile", text(latency.percentile99), ""],
            ["    maximum", text(latency.longest), ""],
        ]
    }

    /// Returns "0.2 ms" or "12.0 ms".
    package static func text(_ span: Duration) -> String { "\(Quantity.tenths(span.inSeconds * 1000)) ms" }

    /// The object that `stats --json` writes.
    var json: JSON.Object {
        let servers = servers.map { server -> JSON.Object in
            [
                "name": server.name, "breaker": server.breaker, "answers": server.answers,
                "medianSeconds": server.latency?.median.inSeconds,
                "p99Seconds": server.latency?.percentile99.inSeconds,
                "longestSeconds": server.latency?.longest.inSeconds,
            ]
        }
        return ["servers": servers, "waiting": waiting]
    }

    /// The section about the names in ``json``, in the help text.
    static let help = """
        remote (if config.json names remote stores and diskcache-net is installed: servers, each with
        name, breaker (closed, open or probing), answers, and medianSeconds, p99Seconds, longestSeconds
        of the answers to this process; waiting: number of keys not sent yet)
        """
}
