// SPDX-License-Identifier: Apache-2.0

/// The eviction order of a full cache: S3-FIFO (Yang et al., SOSP 2023).
///
/// New values enter a small queue, a tenth of the whole. A value that was accessed more than once by the time it reaches
/// the queue's end moves to the main queue. Any other value is evicted and remembered as a ghost; if it comes back while
/// it is remembered, it enters the main queue at once. So values that are accessed only once, as in a scan, pass through
/// only a tenth of the cache. A value that was accessed by the time it reaches the end of the main queue goes through
/// that queue once more.
///
/// Admitting a value to a full cache is expensive: another value must be evicted, and the new bytes end up in memory that
/// is in no processor cache, whereas a rejected value reuses the memory that the last rejected one has freed. While few
/// values are accessed on their way through the small queue, admission doesn't pay, and most newcomers are rejected
/// (``admits(_:)``).
///
/// A value's access counter, 0 to ``highestFrequency``, is stored with the value, so that a hit does not touch these
/// queues. This is a value type without clock or lock: it only decides, and its owner does the rest.
struct EvictionQueues<Element: Sendable>: Sendable {
    /// The queue of a value.
    enum Queue: Int, Sendable {
        case small
        case main
    }

    /// The limit that is exceeded.
    enum Measure: Sendable {
        case cost
        case count
    }

    /// A value's place in the queues, until it is removed.
    typealias Handle = Int32

    /// The maximum of a value's counter, which has two bits.
    static var highestFrequency: UInt8 { 3 }

    /// The maximum number of values, limited by the handles.
    static var capacity: Int { Int(Handle.max) - 2 }

    /// The maximum number of values that an eviction spares before it evicts the next one regardless of its counter.
    ///
    /// It bounds the time of one eviction. Without it, if a hundred thousand values were all in use, one eviction would
    /// go through all of them three times.
    private static var patience: Int { 4096 }

    /// Below this share of values that were accessed in the small queue, most newcomers are rejected.
    ///
    /// If keys are independent (uniform, by Zipf's law, scans) the share is 2 % or less, and rejecting newcomers leaves
    /// the hit ratio as it is. If keys are accessed again soon, the share is several times as high, and newcomers are
    /// needed.
    private static var worthwhileShare: Double { 0.125 }

    /// One in this many newcomers is admitted anyway, to detect when newcomers are accessed again.
    ///
    /// The fewer values are admitted, the longer each stays in the small queue, and the more often it is accessed: if
    /// fewer than one in 4 were admitted, they would reach ``worthwhileShare`` even with independent keys.
    private static var sample: Int { 4 }

    /// A node of a queue.
    ///
    /// Each queue is a ring that includes one node without an element, whose handle is the queue's number.
    private struct Node {
        var element: Element?
        var fingerprint: UInt64 = 0
        var cost = 0
        var queue: Queue
        /// The next node towards the newer end.
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
    /// The share of values that were accessed before they left the small queue: an average over about the last thousand.
    private var usedShare = 1.0
    /// The number of newcomers, except ghosts, while ``usedShare`` was low.
    private var newcomers = 0

    /// The sum of the costs of all values.
    var cost: Int { totals[0].cost + totals[1].cost }
    /// The number of values.
    var count: Int { totals[0].count + totals[1].count }
    /// The number of values in the main queue.
    var mainCount: Int { totals[Queue.main.rawValue].count }

    /// Returns whether to insert a value that would evict others.
    ///
    /// A rejected value is remembered as if it had been evicted, and so is admitted if it comes back soon.
    mutating func admits(_ fingerprint: UInt64) -> Bool {
        if usedShare >= Self.worthwhileShare || ghosts.contains(fingerprint) { return true }
        newcomers &+= 1
        if newcomers % Self.sample == 0 { return true }
        ghosts.add(fingerprint, capacity: count)
        return false
    }

    /// Adds a value to `queue`, or to the appropriate queue if `queue` is nil.
    ///
    /// The main queue is appropriate for a value that was evicted or rejected recently, the small queue for any other
    /// value.
    ///
    /// The value's counter must be 0, or that of the value that it replaces.
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

    /// Removes a value that its owner no longer holds, and returns its queue.
    @discardableResult
    mutating func remove(_ handle: Handle) -> Queue {
        unlink(handle)
        nodes[Int(handle)].element = nil
        free.append(handle)
        return nodes[Int(handle)].queue
    }

    /// Replaces a value with another form of it.
    mutating func replace(_ handle: Handle, by element: Element, cost: Int) {
        totals[nodes[Int(handle)].queue.rawValue].cost += cost - nodes[Int(handle)].cost
        nodes[Int(handle)].element = element
        nodes[Int(handle)].cost = cost
    }

    /// Removes and returns the next value to evict; nil if there is none.
    ///
    /// `exchange` applies the function that it receives to a value's counter, stores the result, and returns the previous
    /// counter.
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
                // As many ghosts as values, as in the paper, so that the memory for ghosts is in proportion.
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

    /// Passes all values to `body`: first those of the small queue, then those of the main queue, each oldest first.
    func forEachOldestFirst(_ body: (Element) -> Void) {
        for end in [Queue.small.rawValue, Queue.main.rawValue] {
            var node = nodes[Int(nodes[end].newer)]
            while let element = node.element {
                body(element)
                node = nodes[Int(node.newer)]
            }
        }
    }

    /// Returns whether to evict from the small queue: if it has at least a tenth of the measure, or if the main queue is
    /// empty.
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
