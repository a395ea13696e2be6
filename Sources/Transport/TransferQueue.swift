// SPDX-License-Identifier: Apache-2.0

/// Who transfers, who waits, and whose turn is next, by server; it does nothing itself.
///
/// At most `limit` transfer at once. A server with none under way may have one beyond that, up to twice the limit in
/// all: so slow servers that take all there is keep nobody from others. Of those that wait, the server with the fewest
/// under way comes first, then the one that has waited longest.
struct TransferQueue<Element> {
    private struct Server {
        var running = 0
        /// A slice gives up its first element in O(1).
        var waiting: ArraySlice<(number: UInt64, element: Element?)> = []

        mutating func popFirst() -> Element? {
            guard !waiting.isEmpty else { return nil }
            // Taken out: the slice keeps the memory of what it has given up.
            let element = waiting[waiting.startIndex].element.take()
            waiting.removeFirst()
            return element
        }
    }

    private let limit: Int
    private var servers: [Substring: Server] = [:]
    private var running = 0
    private var last: UInt64 = 0

    init(limit: Int) {
        self.limit = limit
    }

    private func hasRoom(_ server: Server) -> Bool {
        running < limit || server.running == 0 && running < 2 * limit
    }

    /// Whether a transfer from `site` may begin now, and counts until ``end(_:)``; otherwise `element` waits.
    mutating func begin(_ site: Substring, _ element: Element) -> Bool {
        var server = servers[site] ?? Server()
        defer { servers[site] = server }
        if hasRoom(server) {
            server.running += 1
            running += 1
            return true
        }
        last += 1
        server.waiting.append((last, element))
        return false
    }

    /// A transfer from `site` has ended.
    mutating func end(_ site: Substring) {
        guard var server = servers[site] else { return }
        server.running -= 1
        running -= 1
        servers[site] = server.running == 0 && server.waiting.isEmpty ? nil : server
    }

    /// The next that may begin, and counts then, one for each that has ended; nil: none may.
    ///
    /// Looks at each server that there is something of.
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
