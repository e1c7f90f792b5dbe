import Timekeeping

/// Things due, earliest first: a binary heap.
///
/// Nothing is taken out before its time; what is due may no longer matter, and whoever asked for it finds that out.
struct DeadlineQueue<Item: Sendable>: Sendable {
    private var heap: [(due: Instant, item: Item)] = []

    /// When the earliest thing is due.
    var earliest: Instant? { heap.first?.due }

    /// - Complexity: O(log count).
    mutating func add(_ item: Item, due: Instant) {
        heap.append((due, item))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].due < heap[parent].due else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes out the earliest thing if it is due at `now`.
    ///
    /// - Complexity: O(log count).
    mutating func takeDue(at now: Instant) -> Item? {
        guard let first = heap.first, first.due <= now, let last = heap.popLast() else { return nil }
        guard !heap.isEmpty else { return first.item }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].due < heap[least].due
            {
                least = child
            }
            guard least != parent else { break }
            heap.swapAt(least, parent)
            parent = least
        }
        return first.item
    }
}
