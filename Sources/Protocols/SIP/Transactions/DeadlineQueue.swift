internal import Core

/// Deadlines of many owners, the earliest first; each owner has one at most.
///
/// Replaced entries stay in the heap until they reach its top, or until they are the greater part.
struct DeadlineQueue<Owner: Hashable & Sendable>: Sendable {
    private var heap = DeadlineHeap<Owner>()
    private var current: [Owner: Instant] = [:]

    /// The earliest deadline.
    var next: Instant? { heap.first?.due }

    /// Sets or removes an owner's deadline.
    mutating func set(_ owner: Owner, _ deadline: Instant?) {
        guard current[owner] != deadline else { return }
        current[owner] = deadline
        if let deadline { heap.add(owner, due: deadline) }
        if heap.count > 64, heap.count > current.count * 2 { rebuild() }
        clean()
    }

    /// Removes and returns an owner whose deadline is not after `now`.
    mutating func popDue(at now: Instant) -> Owner? {
        guard let first = heap.first, first.due <= now else { return nil }
        current[first.item] = nil
        heap.removeFirst()
        clean()
        return first.item
    }

    private mutating func clean() {
        while let first = heap.first, current[first.item] != first.due { heap.removeFirst() }
    }

    /// Gives back the memory of a queue that has shrunk.
    mutating func shrink() {
        current = current.packed
        rebuild()
    }

    private mutating func rebuild() {
        heap = DeadlineHeap()
        for (owner, deadline) in current { heap.add(owner, due: deadline) }
    }
}

extension Dictionary {
    /// The same, in no more memory than it needs.
    var packed: Self { Dictionary(uniqueKeysWithValues: map { ($0.key, $0.value) }) }
}
