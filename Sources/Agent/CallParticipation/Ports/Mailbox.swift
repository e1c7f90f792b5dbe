/// A task to resume, once no lock is held.
struct PortWake: Sendable {
    let resume: @Sendable () -> Void
}

/// Names a task that waits at a port.
typealias PortWaiter = UInt64

/// What waits for readers in order, and readers that wait for it. Each element goes to one reader.
struct Mailbox<Element: Sendable>: Sendable {
    /// Of those that wait.
    private(set) var elements: [Element] = []
    private var readers: [Reader] = []
    private var isOver = false

    private struct Reader: Sendable {
        let waiter: PortWaiter
        let continuation: CheckedContinuation<Element?, Never>
    }

    mutating func put(_ element: Element, into wakes: inout [PortWake]) {
        guard !isOver else { return }
        guard !readers.isEmpty else { return elements.append(element) }
        wakes.append(Self.wake(readers.removeFirst(), element))
    }

    /// Drops the oldest.
    mutating func dropFirst() -> Element? { elements.isEmpty ? nil : elements.removeFirst() }

    mutating func read(
        _ waiter: PortWaiter, _ continuation: CheckedContinuation<Element?, Never>, into wakes: inout [PortWake]
    ) {
        let reader = Reader(waiter: waiter, continuation: continuation)
        if !elements.isEmpty {
            wakes.append(Self.wake(reader, elements.removeFirst()))
        } else if isOver {
            wakes.append(Self.wake(reader, nil))
        } else {
            readers.append(reader)
        }
    }

    /// The reader's task is cancelled.
    ///
    /// - Returns: Whether it waits here.
    mutating func cancel(_ waiter: PortWaiter, into wakes: inout [PortWake]) -> Bool {
        guard let index = readers.firstIndex(where: { $0.waiter == waiter }) else { return false }
        wakes.append(Self.wake(readers.remove(at: index), nil))
        return true
    }

    /// Nothing more comes; what waits can still be read.
    mutating func finish(into wakes: inout [PortWake]) {
        isOver = true
        for reader in readers { wakes.append(Self.wake(reader, nil)) }
        readers = []
    }

    mutating func removeAll() { elements = [] }

    private static func wake(_ reader: Reader, _ element: Element?) -> PortWake {
        PortWake { reader.continuation.resume(returning: element) }
    }
}
