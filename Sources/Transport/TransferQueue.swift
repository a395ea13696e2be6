// SPDX-License-Identifier: Apache-2.0

/// The running and waiting transfers of each server, and the order of their turns; the queue does not perform transfers.
///
/// At most `limit` transfers run at once. A server without a running transfer may have one beyond that, up to twice the
/// limit in total, so that slow servers that use up the limit do not block others. The next transfer is one of the server
/// with the fewest running transfers; among such servers, the one that has waited longest. At most `limitPerServer`
/// transfers of one server run at once.
struct TransferQueue<Element> {
    private struct Server {
        var running = 0
        /// A slice removes its first element in O(1).
        var waiting: ArraySlice<(number: UInt64, element: Element?)> = []

        mutating func popFirst() -> Element? {
            guard !waiting.isEmpty else { return nil }
            // Set to nil, because the slice keeps removed elements in memory.
            let element = waiting[waiting.startIndex].element.take()
            waiting.removeFirst()
            return element
        }
    }

    private let limit: Int
    private let limitPerServer: Int
    private var servers: [Substring: Server] = [:]
    private var running = 0
    private var last: UInt64 = 0

    init(limit: Int, perServer limitPerServer: Int = .max) {
        self.limit = limit
        self.limitPerServer = limitPerServer
    }

    private func hasRoom(_ server: Server) -> Bool {
        server.running < limitPerServer
            && (running < limit || server.running == 0 && running < 2 * limit)
    }

    /// Returns whether a transfer from `site` may begin now; if so, it counts as running until ``end(_:)``, otherwise
    /// `element` waits.
    mutating func begin(_ site: Substring, _ element: Element) -> Bool {
        if beginIfFree(site) { return true }
        last += 1
        servers[site, default: Server()].waiting.append((last, element))
        return false
    }

    /// Returns whether a transfer from `site` may begin now; if so, it counts as running until ``end(_:)``.
    mutating func beginIfFree(_ site: Substring) -> Bool {
        guard hasRoom(servers[site] ?? Server()) else { return false }
        servers[site, default: Server()].running += 1
        running += 1
        return true
    }

    /// Ends a running transfer from `site`.
    mutating func end(_ site: Substring) {
        guard var server = servers[site] else { return }
        server.running -= 1
        running -= 1
        servers[site] = server.running == 0 && server.waiting.isEmpty ? nil : server
    }

    /// Removes the next transfer that may begin and counts it as running; nil if there is none.
    ///
    /// The caller calls this once for each transfer that has ended.
    ///
    /// - Complexity: O(*n*) in the servers that have transfers.
    mutating func next() -> Element? {
        var best: (site: Substring, running: Int, number: UInt64)?
        for (site, server) in servers where hasRoom(server) {
            guard let first = server.waiting.first else { continue }
            if let best, (best.running, best.number) < (server.running, first.number) { continue }
            best = (site, server.running, first.number)
        }
        guard let best, let first = servers[best.site]?.popFirst() else { return nil }
        servers[best.site]?.running += 1
        running += 1
        return first
    }
}
