import Core

/// Items due, earliest first.
///
/// A due item may have become irrelevant; the caller checks that. Only ``sweep(keeping:)`` removes items before their
/// time, so that irrelevant items never outnumber the relevant ones, or a thousand.
struct DeadlineQueue<Item: Sendable>: Sendable {
    private var heap = DeadlineHeap<Item>()
    /// Number of items past which the queue is swept.
    private var bound = Self.smallest
    private static var smallest: Int { 1_024 }

    /// When the earliest thing is due.
    var earliest: Instant? { heap.first?.due }

    /// - Complexity: O(log count).
    mutating func add(_ item: Item, due: Instant) { heap.add(item, due: due) }

    /// How many there are, whether they matter or not.
    var count: Int { heap.count }

    /// There are twice as many as after the last sweep.
    var isDueForSweep: Bool { heap.count > bound }

    /// Takes out what does not matter any more.
    ///
    /// - Complexity: O(count · log count), spread over as many additions.
    mutating func sweep(keeping matters: (Item) -> Bool) {
        heap.removeAll(keeping: matters)
        bound = max(Self.smallest, 2 * heap.count)
    }

    /// Takes out the earliest thing if it is due at `now`.
    ///
    /// - Complexity: O(log count).
    mutating func takeDue(at now: Instant) -> Item? {
        guard let first = heap.first, first.due <= now else { return nil }
        heap.removeFirst()
        return first.item
    }
}
