import Core

/// What the core will have to look at later, and which of the recurring tasks are planned.
struct Deadlines: Sendable {
    /// A task that is planned once at a time.
    enum Task: UInt8, Sendable {
        case tokenSweep
        case pruning
        case eventPruning

        fileprivate var deadline: ExchangeCore.Deadline {
            switch self {
            case .tokenSweep: .tokensAreSwept
            case .pruning: .pruningIsDue
            case .eventPruning: .eventsArePruned
            }
        }

        fileprivate var bit: UInt8 { 1 << rawValue }
    }

    private var queue = DeadlineQueue<ExchangeCore.Deadline>()
    /// A bit for each task.
    private var planned: UInt8 = 0

    /// How many there are, whether they matter or not.
    var count: Int { queue.count }
    /// When the earliest is due.
    var earliest: Instant? { queue.earliest }

    mutating func add(_ deadline: ExchangeCore.Deadline, due: Instant) { queue.add(deadline, due: due) }

    /// Takes out the earliest if it is due at `now`.
    mutating func takeDue(at now: Instant) -> ExchangeCore.Deadline? { queue.takeDue(at: now) }

    /// Plans a task unless it is planned already.
    mutating func plan(_ task: Task, due: Instant) {
        guard planned & task.bit == 0 else { return }
        planned |= task.bit
        queue.add(task.deadline, due: due)
    }

    /// A task's deadline has come; it may be planned again.
    mutating func begin(_ task: Task) { planned &= ~task.bit }

    // MARK: - Those that do not matter

    /// There are twice as many as after the last sweep.
    var isDueForSweep: Bool { queue.isDueForSweep }

    /// Takes out what does not matter any more.
    mutating func sweep(keeping matters: (ExchangeCore.Deadline) -> Bool) { queue.sweep(keeping: matters) }
}

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
