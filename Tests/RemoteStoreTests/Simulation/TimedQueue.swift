// SPDX-License-Identifier: Apache-2.0

/// A queue of future events: a binary heap ordered by time, and by insertion for the same time.
struct TimedQueue<Element> {
    private struct Item {
        let time: Double
        let number: Int
        let element: Element

        func isBefore(_ other: Item) -> Bool {
            time < other.time || time == other.time && number < other.number
        }
    }

    private var items: [Item] = []
    private var nextNumber = 0

    mutating func insert(_ element: Element, at time: Double) {
        items.append(Item(time: time, number: nextNumber, element: element))
        nextNumber += 1
        var place = items.count - 1
        while place > 0 {
            let parent = (place - 1) / 2
            guard items[place].isBefore(items[parent]) else { return }
            items.swapAt(place, parent)
            place = parent
        }
    }

    /// Removes and returns the earliest event, if it is due.
    mutating func popFirst(until now: Double) -> (time: Double, element: Element)? {
        guard let first = items.first, first.time <= now else { return nil }
        let last = items.removeLast()
        guard !items.isEmpty else { return (first.time, first.element) }
        items[0] = last
        var place = 0
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < items.count {
                if items[child].isBefore(items[least]) { least = child }
            }
            guard least != place else { return (first.time, first.element) }
            items.swapAt(place, least)
            place = least
        }
    }
}
