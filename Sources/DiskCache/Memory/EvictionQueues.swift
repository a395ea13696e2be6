// SPDX-License-Identifier: Apache-2.0

/// The order in which values leave a full cache: S3-FIFO (Yang et al., SOSP 2023).
///
/// New values enter a small queue, a tenth of the whole. Those that were asked for more than once by the
/// time they reach its end go on to the main queue. The others leave and are remembered as ghosts; one
/// that comes back while it is remembered enters the main queue at once. So what is asked for only
/// once, as in a scan, passes through a tenth of the cache. At its end the main queue gives another round to
/// what was asked for since.
///
/// Admitting a value to a full cache is work: another must go, and the bytes end up in memory that is in no
/// processor cache, whereas a value that isn't kept uses again what the last one has freed. While few values are
/// asked for on their way through the small queue, that work doesn't pay, and most newcomers are turned away
/// (``admits(_:)``).
///
/// How often a value was asked for is counted where the value is, 0 to ``highestFrequency``, so that a hit
/// touches nothing here. No clock, no lock: a value type that decides and leaves the rest to its owner.
struct EvictionQueues<Element: Sendable>: Sendable {
    /// Where a value is queued.
    enum Queue: Int, Sendable {
        case small
        case main
    }

    /// What there is too much of.
    enum Measure: Sendable {
        case cost
        case count
    }

    /// A value's place in the queues, until it is removed.
    typealias Handle = Int32

    /// Where a value's counter stops; two bits.
    static var highestFrequency: UInt8 { 3 }

    /// How many values there can be: as many as handles can name.
    static var capacity: Int { Int(Handle.max) - 2 }

    /// How many values an eviction passes over at most before it takes the next one whatever its counter says.
    ///
    /// Bounds the time of one eviction. Without it, if a hundred thousand values were all in use, one eviction
    /// would go through them three times.
    private static var patience: Int { 4096 }

    /// Below this share of values that were asked for in the small queue, most newcomers are turned away.
    ///
    /// Where keys are independent (uniform, by Zipf's law, scans) it is 2 % and less, and turning newcomers away
    /// leaves the hit ratio as it is; where a key is asked for again soon, it is several times as much, and they are
    /// needed.
    private static var worthwhileShare: Double { 0.125 }

    /// One in this many newcomers is admitted anyway, so that it shows when they are asked for again.
    ///
    /// Those that are admitted stay in the small queue that much longer, and so are asked for that much more
    /// often: with more than 4 they would reach the share above.
    private static var sample: Int { 4 }

    /// Each queue is a ring through a node without an element, whose handle is the queue's number.
    private struct Node {
        var element: Element?
        var fingerprint: UInt64 = 0
        var cost = 0
        var queue: Queue
        /// Towards the newer end.
        var newer: Handle
        var older: Handle

        init(end queue: Queue) {
            self.queue = queue
            (newer, older) = (Handle(queue.rawValue), Handle(queue.rawValue))
        }
    }

    private struct Total {
        var cost = 0
        var count = 0

        func amount(_ measure: Measure) -> Int { measure == .cost ? cost : count }
    }

    private var nodes = [Node(end: .small), Node(end: .main)]
    private var free: [Handle] = []
    private var totals = InlineArray<2, Total>(repeating: Total())
    private(set) var ghosts = GhostList()
    /// The share that was asked for of those that left the small queue: an average over about the last thousand.
    private var usedShare = 1.0
    /// Newcomers that came while few were asked for.
    private var newcomers = 0

    /// Sum of the costs of all values.
    var cost: Int { totals[0].cost + totals[1].cost }
    /// Number of values.
    var count: Int { totals[0].count + totals[1].count }
    /// Values in the main queue.
    var mainCount: Int { totals[Queue.main.rawValue].count }

    /// Whether a value should be inserted that would evict others.
    ///
    /// If not, it is remembered as if it had been evicted, and so admitted when it comes back soon.
    mutating func admits(_ fingerprint: UInt64) -> Bool {
        if usedShare >= Self.worthwhileShare || ghosts.contains(fingerprint) { return true }
        newcomers &+= 1
        if newcomers % Self.sample == 0 { return true }
        ghosts.add(fingerprint, capacity: count)
        return false
    }

    /// Adds a value, in the main queue if it was evicted not long ago or `queue` says so.
    ///
    /// Its counter has to start at 0.
    mutating func insert(
        _ element: Element,
        fingerprint: UInt64,
        cost: Int,
        queue: Queue? = nil
    ) -> Handle {
        let isKnown = ghosts.take(fingerprint)
        var node = Node(end: queue ?? (isKnown ? .main : .small))
        (node.element, node.fingerprint, node.cost) = (element, fingerprint, cost)
        let handle = free.popLast() ?? Handle(nodes.count)
        if Int(handle) == nodes.count { nodes.append(node) } else { nodes[Int(handle)] = node }
        link(handle)
        return handle
    }

    /// Takes out a value that its owner no longer has, and gives the queue that it was in.
    @discardableResult
    mutating func remove(_ handle: Handle) -> Queue {
        unlink(handle)
        nodes[Int(handle)].element = nil
        free.append(handle)
        return nodes[Int(handle)].queue
    }

    /// Puts another value in the place of one, which it is a form of.
    mutating func replace(_ handle: Handle, by element: Element, cost: Int) {
        totals[nodes[Int(handle)].queue.rawValue].cost += cost - nodes[Int(handle)].cost
        nodes[Int(handle)].element = element
        nodes[Int(handle)].cost = cost
    }

    /// Chooses the next value to leave and takes it out; nil where there is none.
    ///
    /// `exchange` gives a value's counter, and sets it to what the function that it gets makes of it.
    mutating func evict(
        for measure: Measure,
        exchange: (Element, (UInt8) -> UInt8) -> UInt8
    ) -> Element? {
        var patience = Self.patience
        while count > 0 {
            patience -= 1
            let isSmall = isSmallNext(measure)
            let handle = nodes[isSmall ? Queue.small.rawValue : Queue.main.rawValue].newer
            guard let element = nodes[Int(handle)].element else { return nil }
            let frequency = exchange(element) { isSmall ? ($0 > 1 ? 0 : $0) : ($0 > 0 ? $0 - 1 : 0) }
            if isSmall { usedShare += ((frequency > 0 ? 1 : 0) - usedShare) / 1024 }
            if frequency <= (isSmall ? 1 : 0) || patience <= 0 {
                // As many ghosts as values, as in the paper, so that their memory is in proportion.
                if isSmall { ghosts.add(nodes[Int(handle)].fingerprint, capacity: count) }
                remove(handle)
                return element
            }
            unlink(handle)
            nodes[Int(handle)].queue = .main
            link(handle)
        }
        return nil
    }

    /// Gives all values to `body`, those that entered first before the others, the small queue before the main.
    func forEachOldestFirst(_ body: (Element) -> Void) {
        for end in [Queue.small.rawValue, Queue.main.rawValue] {
            var node = nodes[Int(nodes[end].newer)]
            while let element = node.element {
                body(element)
                node = nodes[Int(node.newer)]
            }
        }
    }

    /// Whether the small queue has more than its tenth of what there is too much of.
    private func isSmallNext(_ measure: Measure) -> Bool {
        let small = totals[Queue.small.rawValue].amount(measure)
        let total = small + totals[Queue.main.rawValue].amount(measure)
        guard mainCount > 0, mainCount < count else { return mainCount == 0 }
        return small >= total / 10 + (total % 10 > 0 ? 1 : 0)
    }

    /// Puts a node at the newer end of its queue.
    private mutating func link(_ handle: Handle) {
        let queue = nodes[Int(handle)].queue.rawValue
        let newest = nodes[queue].older
        (nodes[Int(handle)].older, nodes[Int(handle)].newer) = (newest, Handle(queue))
        (nodes[Int(newest)].newer, nodes[queue].older) = (handle, handle)
        totals[queue].cost += nodes[Int(handle)].cost
        totals[queue].count += 1
    }

    private mutating func unlink(_ handle: Handle) {
        let node = nodes[Int(handle)]
        (nodes[Int(node.newer)].older, nodes[Int(node.older)].newer) = (node.older, node.newer)
        totals[node.queue.rawValue].cost -= node.cost
        totals[node.queue.rawValue].count -= 1
    }
}
