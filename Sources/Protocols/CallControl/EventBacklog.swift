/// Keeps events until there is a listener (contract CONN-10).
///
/// Filled by the connection, emptied once by the first listener. When full the oldest event is dropped and counted.
public struct EventBacklog<Event: Sendable>: Sendable {
    private enum State: Sendable {
        case waiting([Event])
        case flowing
    }

    /// Events held at most.
    public let capacity: Int
    /// Events dropped because there was no listener for too long.
    public private(set) var droppedCount = 0
    private var state = State.waiting([])

    /// Makes an empty backlog that holds up to `capacity` events, at least one.
    public init(capacity: Int = 1_024) { self.capacity = max(1, capacity) }

    /// Takes an event; gives it back if it can be delivered at once, keeps it otherwise.
    public mutating func offer(_ event: Event) -> Event? {
        switch state {
        case .flowing:
            return event
        case .waiting(var events):
            state = .flowing  // Lets go of the array, so that it is changed in place.
            if events.count == capacity {
                events.removeFirst()
                droppedCount += 1
            }
            events.append(event)
            state = .waiting(events)
            return nil
        }
    }

    /// Notes the first listener and gives it what waited, in order; a later listener gets nothing old.
    public mutating func attach() -> [Event] {
        switch state {
        case .flowing:
            return []
        case .waiting(let events):
            state = .flowing
            return events
        }
    }
}
