/// Items with a deadline each, the earliest first: a binary heap.
///
/// Items are not found in it. One that has become irrelevant stays until it is the first, or until ``removeAll(keeping:)``.
package struct DeadlineHeap<Item: Sendable>: Sendable {
    /// An item, and when it is due.
    package typealias Entry = (due: Instant, item: Item)

    @usableFromInline var entries: [Entry] = []

    /// An empty one.
    @inlinable
    package init() {}

    /// The earliest item.
    @inlinable
    package var first: Entry? { entries.first }

    /// How many there are.
    @inlinable
    package var count: Int { entries.count }

    /// Adds an item.
    ///
    /// - Complexity: O(log count).
    @inlinable
    package mutating func add(_ item: Item, due: Instant) {
        entries.append((due, item))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].due < entries[parent].due else { break }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// Removes the earliest item, if there is one.
    ///
    /// - Complexity: O(log count).
    @inlinable
    package mutating func removeFirst() {
        guard let last = entries.popLast(), !entries.isEmpty else { return }
        entries[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].due < entries[least].due { least = child }
            guard least != parent else { return }
            entries.swapAt(least, parent)
            parent = least
        }
    }

    /// Removes all items but those that matter.
    ///
    /// - Complexity: O(count · log count).
    @inlinable
    package mutating func removeAll(keeping matters: (Item) -> Bool) {
        // In order of time a list is a heap already.
        entries = entries.filter { matters($0.item) }.sorted { $0.due < $1.due }
    }
}
