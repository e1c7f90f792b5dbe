import Core

/// Items due, earliest first: a binary heap.
///
/// A due item may have become irrelevant; the caller checks that. Only ``sweep(keeping:)`` removes items before their
/// time, so that irrelevant items never outnumber the relevant ones, or a thousand.
struct DeadlineQueue<Item: Sendable>: Sendable {
    private var heap: [(due: Instant, item: Item)] = []
    /// Number of items past which the queue is swept.
    private var bound = Self.smallest
    private static var smallest: Int { 1_024 }

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

    /// How many there are, whether they matter or not.
    var count: Int { heap.count }

    /// There are twice as many as after the last sweep.
    var isDueForSweep: Bool { heap.count > bound }

    /// Takes out what does not matter any more.
    ///
    /// - Complexity: O(count), spread over as many additions.
    mutating func sweep(keeping matters: (Item) -> Bool) {
        // In order of time a list is a heap already.
        heap = heap.filter { matters($0.item) }.sorted { $0.due < $1.due }
        bound = max(Self.smallest, 2 * heap.count)
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
