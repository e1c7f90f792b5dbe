internal import Core

/// Deadlines of many owners, the earliest first; each owner has one at most.
///
/// A binary heap whose replaced entries stay until they reach the top, or until they are the greater part.
struct DeadlineQueue<Owner: Hashable & Sendable>: Sendable {
    private struct Entry {
        let deadline: Instant
        let owner: Owner
    }

    private var heap: [Entry] = []
    private var current: [Owner: Instant] = [:]

    /// The earliest deadline.
    var next: Instant? { heap.first?.deadline }

    /// Sets or removes an owner's deadline.
    mutating func set(_ owner: Owner, _ deadline: Instant?) {
        guard current[owner] != deadline else { return }
        current[owner] = deadline
        if let deadline { push(Entry(deadline: deadline, owner: owner)) }
        if heap.count > 64, heap.count > current.count * 2 { rebuild() }
        clean()
    }

    /// Removes and returns an owner whose deadline is not after `now`.
    mutating func popDue(at now: Instant) -> Owner? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        current[first.owner] = nil
        removeFirst()
        clean()
        return first.owner
    }

    private mutating func clean() {
        while let first = heap.first, current[first.owner] != first.deadline { removeFirst() }
    }

    /// Gives back the memory of a queue that has shrunk.
    mutating func shrink() {
        current = current.packed
        rebuild()
    }

    private mutating func rebuild() {
        heap = []
        for (owner, deadline) in current { push(Entry(deadline: deadline, owner: owner)) }
    }

    private mutating func push(_ entry: Entry) {
        heap.append(entry)
        var index = heap.count - 1
        while index > 0, heap[index].deadline < heap[(index - 1) / 2].deadline {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline { least = child }
            guard least != index else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}

extension Dictionary {
    /// The same, in no more memory than it needs.
    var packed: Self { Dictionary(uniqueKeysWithValues: map { ($0.key, $0.value) }) }
}
