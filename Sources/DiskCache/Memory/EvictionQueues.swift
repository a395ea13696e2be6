// SPDX-License-Identifier: Apache-2.0

/// The order in which values leave a full cache: S3-FIFO (Yang et al., SOSP 2023).
///
/// New values enter a small queue, a tenth of the whole. Those that were asked for more than once by the
/// time they reach its end go on to the main queue; the others leave and are remembered as ghosts, and one
/// that comes back as long as it is remembered enters the main queue at once. So what is asked for only
/// once, as in a scan, passes through a tenth of the cache. At its end the main queue gives another round to
/// what was asked for since.
///
/// How often a value was asked for is counted where the value is, 0 to ``highestFrequency``, so that a hit
/// touches nothing here. No clock, no lock: a value type that decides and leaves the doing to its owner.
struct EvictionQueues<Element: Sendable>: Sendable {
    /// Where a value is queued.
    enum Queue: Sendable {
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

    /// Values that an eviction passes over at most before it takes the next one whatever its counter says.
    ///
    /// Bounds the time of one eviction; without it a hundred thousand values that are all in use would
    /// be gone through three times at once.
    private static var patience: Int { 4096 }

    private static var none: Handle { -1 }

    private struct Node {
        var element: Element
        var fingerprint: UInt64
        var cost: Int
        var queue: Queue
        /// Towards the newer end; in a free node, the next free one.
        var newer: Handle
        var older: Handle
    }

    private struct Line {
        var newest: Handle = -1
        var oldest: Handle = -1
        var count = 0
        var cost = 0

        func amount(_ measure: Measure) -> Int { measure == .cost ? cost : count }
    }

    private var nodes: [Node] = []
    private var free: [Handle] = []
    private var small = Line()
    private var main = Line()
    private var ghosts = GhostList()

    /// Sum of the costs of all values.
    var cost: Int { small.cost + main.cost }
    /// Number of values.
    var count: Int { small.count + main.count }
    /// Values in the main queue.
    var mainCount: Int { main.count }
    /// Fingerprints remembered.
    var ghostCount: Int { ghosts.count }

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
        let queue = queue ?? (isKnown ? .main : .small)
        let node = Node(
            element: element,
            fingerprint: fingerprint,
            cost: cost,
            queue: queue,
            newer: Self.none,
            older: Self.none
        )
        let handle = free.popLast() ?? Handle(nodes.count)
        if Int(handle) == nodes.count { nodes.append(node) } else { nodes[Int(handle)] = node }
        link(handle)
        return handle
    }

    /// Takes a value out that its owner no longer has; gives the queue that it was in and its cost.
    @discardableResult
    mutating func remove(_ handle: Handle) -> (queue: Queue, cost: Int) {
        unlink(handle)
        free.append(handle)
        return (nodes[Int(handle)].queue, nodes[Int(handle)].cost)
    }

    /// Forgets all values and ghosts.
    mutating func removeAll() {
        self = EvictionQueues()
    }

    /// What a value costs.
    func cost(of handle: Handle) -> Int { nodes[Int(handle)].cost }

    /// The value now costs something else.
    mutating func setCost(_ cost: Int, of handle: Handle) {
        let difference = cost - nodes[Int(handle)].cost
        nodes[Int(handle)].cost = cost
        if nodes[Int(handle)].queue == .small { small.cost += difference } else { main.cost += difference }
    }

    /// Chooses the next value to leave and takes it out; nil where there is none.
    ///
    /// `exchange` gives a value's counter, and sets it to what the function that it gets makes of it.
    mutating func evict(
        for measure: Measure,
        exchange: (Element, (UInt8) -> UInt8) -> UInt8
    ) -> (element: Element, cost: Int)? {
        var patience = Self.patience
        while count > 0 {
            patience -= 1
            if isSmallNext(measure) {
                let handle = small.oldest
                let frequency = exchange(nodes[Int(handle)].element) { $0 > 1 ? 0 : $0 }
                if frequency <= 1 || patience <= 0 { return evict(handle) }
                move(handle, to: .main)
            } else {
                let handle = main.oldest
                let frequency = exchange(nodes[Int(handle)].element) { $0 > 0 ? $0 - 1 : 0 }
                if frequency == 0 || patience <= 0 { return evict(handle) }
                move(handle, to: .main)
            }
        }
        return nil
    }

    /// Gives all values to `body`, those that entered first before the others, the small queue before the main.
    func forEachOldestFirst(_ body: (_ element: Element, _ cost: Int) -> Void) {
        for line in [small, main] {
            var handle = line.oldest
            while handle != Self.none {
                body(nodes[Int(handle)].element, nodes[Int(handle)].cost)
                handle = nodes[Int(handle)].newer
            }
        }
    }

    /// Whether the small queue has more than its tenth of what there is too much of.
    private func isSmallNext(_ measure: Measure) -> Bool {
        guard small.count > 0 else { return false }
        let total = small.amount(measure) + main.amount(measure)
        return main.count == 0 || small.amount(measure) >= total / 10 + (total % 10 > 0 ? 1 : 0)
    }

    private mutating func evict(_ handle: Handle) -> (element: Element, cost: Int) {
        let node = nodes[Int(handle)]
        // As many ghosts as values, as in the paper, so that their memory is in proportion.
        if node.queue == .small { ghosts.add(node.fingerprint, capacity: count) }
        remove(handle)
        return (node.element, node.cost)
    }

    private mutating func move(_ handle: Handle, to queue: Queue) {
        unlink(handle)
        nodes[Int(handle)].queue = queue
        link(handle)
    }

    /// Puts a node at the newer end of its queue.
    private mutating func link(_ handle: Handle) {
        let node = nodes[Int(handle)]
        var line = node.queue == .small ? small : main
        nodes[Int(handle)].older = line.newest
        nodes[Int(handle)].newer = Self.none
        if line.newest == Self.none { line.oldest = handle } else { nodes[Int(line.newest)].newer = handle }
        line.newest = handle
        line.count += 1
        line.cost += node.cost
        if node.queue == .small { small = line } else { main = line }
    }

    private mutating func unlink(_ handle: Handle) {
        let node = nodes[Int(handle)]
        var line = node.queue == .small ? small : main
        if node.newer == Self.none {
            line.newest = node.older
        } else {
            nodes[Int(node.newer)].older = node.older
        }
        if node.older == Self.none {
            line.oldest = node.newer
        } else {
            nodes[Int(node.older)].newer = node.newer
        }
        line.count -= 1
        line.cost -= node.cost
        if node.queue == .small { small = line } else { main = line }
    }
}
